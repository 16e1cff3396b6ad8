"""Weighted means of weights: what soft updates are made of."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from triax.core.trees import describe_difference

Number = float | np.number | jax.Array


@jax.jit
def interpolate(mine: PyTree, theirs: PyTree, tau: Any) -> PyTree:
    """``(1 - tau) mine + tau theirs`` for floating leaves, copies of ``theirs`` for others.

    Raises:
        TypeError: structure, shapes or dtypes differ; the message names the leaves.
    """
    difference = describe_difference(mine, theirs, "(params, function_state)")
    if difference is not None:
        raise TypeError(f"soft_update: the weights of other do not fit: {difference}")

    def leaf(a: jax.Array, b: jax.Array) -> jax.Array:
        if not jnp.issubdtype(b.dtype, jnp.inexact):
            return jnp.copy(b)
        # 0 * inf is NaN: a copy must not look at what it replaces, nor at what it leaves out
        mixed = (1 - tau) * a + tau * b
        return jnp.where(tau >= 1, b, jnp.where(tau <= 0, a, mixed)).astype(a.dtype)

    return jax.tree.map(leaf, mine, theirs)
