"""Losses whose gradient is that of a policy's return, one value per sample."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

MAX_LOG_RATIO = 80.0
"""Its exponential is finite in float32, and beyond any clipping."""


def ppo_clip(
    log_prob: Float[Array, "*batch"],
    old_log_prob: Float[Array, "*batch"],
    advantage: Float[Array, "*batch"],
    *,
    epsilon: ArrayLike = 0.2,
) -> Float[Array, "*batch"]:
    r"""Clipped surrogate loss, one value per sample.

    .. math:: -\min(\rho A, \mathrm{clip}(\rho, 1-\epsilon, 1+\epsilon) A), \quad \rho = \pi / \pi_\text{old}

    ``[*batch]`` each; log-probabilities are in nats. Gradients flow through ``log_prob`` only if the other two are
    constants.
    Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7.
    """
    log_ratio = log_prob - old_log_prob
    # Where a huge ratio is clipped its gradient must be 0, not 0 * inf.
    ratio = jnp.exp(jnp.where(advantage >= 0, jnp.minimum(log_ratio, MAX_LOG_RATIO), log_ratio))
    clipped = jnp.clip(ratio, 1 - epsilon, 1 + epsilon)
    return -jnp.minimum(ratio * advantage, clipped * advantage)
