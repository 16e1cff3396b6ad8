"""How much each rollout worker explores."""

import numpy as np
from jaxtyping import Float

from triax.core.numbers import check_count, check_number


def epsilon_ladder(num_workers: int, *, base: float = 0.4, alpha: float = 7.0) -> Float[np.ndarray, " workers"]:
    r"""One constant epsilon for each worker, falling from ``base`` to ``base ** (1 + alpha)``.

    .. math:: \epsilon_i = \epsilon^{1 + \alpha i / (N - 1)}, \qquad i = 0 \dots N - 1

    One worker alone has ``base``. Source: Horgan et al. 2018, arXiv:1803.00933, section 4.1.
    """
    count = check_count("epsilon_ladder", "num_workers", num_workers)
    base = check_number("epsilon_ladder", "base", base, low=0, high=1)
    alpha = check_number("epsilon_ladder", "alpha", alpha, low=0)
    return base ** (1 + alpha * np.arange(count) / max(count - 1, 1))
