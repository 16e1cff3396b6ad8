"""Quantile fractions and their embedding."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from triax.core import random
from triax.core.keys import Key


def quantiles(batch_size: int, num_quantiles: int = 200) -> Float[Array, "batch_size num_quantiles"]:
    r"""The midpoints :math:`(2i + 1) / 2N` of ``num_quantiles`` equal parts of [0, 1], ascending, in every
    row.

    The average of a distribution's quantiles at these fractions estimates its mean.
    Source: Dabney et al. 2017, arXiv:1710.10044, lemma 2.
    """
    midpoints = (np.arange(num_quantiles, dtype=np.float32) + 0.5) / num_quantiles
    return jnp.broadcast_to(midpoints, (batch_size, num_quantiles))


def quantiles_uniform(rng: Key, batch_size: int, num_quantiles: int = 32) -> Float[Array, "batch_size num_quantiles"]:
    """Independent uniform fractions in [0, 1), in ascending order.

    Source: Dabney et al. 2018, arXiv:1806.06923, section 3.1.
    """
    return jnp.sort(random.uniform(rng, (batch_size, num_quantiles)), axis=-1)


def quantile_cos_embedding(
    quantile_fractions: Float[Array, "*batch num_quantiles"], n: int = 64
) -> Float[Array, "*batch num_quantiles n"]:
    r"""Features :math:`\cos(\pi i \tau)`, :math:`i = 0, ..., n - 1`, of each :math:`\tau`: a new last axis.

    Source: Dabney et al. 2018, arXiv:1806.06923, eq. 4.
    """
    return jnp.cos(math.pi * jnp.arange(n) * jnp.asarray(quantile_fractions)[..., None])
