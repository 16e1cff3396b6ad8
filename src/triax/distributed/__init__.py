"""Beyond one process, on Ray: needs ``pip install 'triax[ray]'``, which is imported when a run starts."""

from triax.distributed.ape_x import ApeX
from triax.distributed.config import ApeXConfig, DistributedError
from triax.distributed.exploration import epsilon_ladder
from triax.distributed.rate_limiter import RateLimiter
from triax.distributed.recipe import Recipe

__all__ = ["ApeX", "ApeXConfig", "DistributedError", "RateLimiter", "Recipe", "epsilon_ladder"]
