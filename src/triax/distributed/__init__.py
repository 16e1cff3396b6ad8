"""Beyond one process, on Ray: needs ``pip install 'triax[ray]'``; Ray is imported when a run starts."""

from triax.distributed.ape_x import ApeX
from triax.distributed.config import ApeXConfig, DistributedError
from triax.distributed.exploration import epsilon_ladder
from triax.distributed.rate_limiter import RateLimiter
from triax.distributed.recipe import Recipe
from triax.distributed.worker import Worker

__all__ = ["ApeX", "ApeXConfig", "DistributedError", "RateLimiter", "Recipe", "Worker", "epsilon_ladder"]
