"""Weighted means of weights: what soft updates are made of."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from triax.core.trees import describe_difference

Number = float | np.number | jax.Array


@jax.jit
def interpolate(mine: tuple[PyTree, PyTree], theirs: tuple[PyTree, PyTree], tau: Any) -> tuple[PyTree, PyTree]:
    """Weights ``(params, function_state)``, a part ``tau`` of the way from ``mine`` to ``theirs``.

    Floating leaves of ``params`` become ``(1 - tau) mine + tau theirs``. All else is copied from ``theirs``, unless
    ``tau`` is 0: counts, means and sums of squares belong together, and a mixture of two sets of them describes no
    data at all.

    Raises:
        TypeError: structure, shapes or dtypes differ; the message names the leaves.
    """
    difference = describe_difference(mine, theirs, "(params, function_state)")
    if difference is not None:
        raise TypeError(f"soft_update: the weights of other do not fit: {difference}")

    def copied(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where(tau <= 0, a, b)

    def mixed(a: jax.Array, b: jax.Array) -> jax.Array:
        if not jnp.issubdtype(b.dtype, jnp.inexact):
            return copied(a, b)
        # 0 * inf is NaN: a copy must not look at what it replaces, nor at what it leaves out
        between = (1 - tau) * a + tau * b
        return jnp.where(tau >= 1, b, jnp.where(tau <= 0, a, between)).astype(a.dtype)

    (params, function_state), (their_params, their_state) = mine, theirs
    return jax.tree.map(mixed, params, their_params), jax.tree.map(copied, function_state, their_state)
