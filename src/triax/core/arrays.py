"""Functions of arrays that ``jax.numpy`` does not have."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from triax.core.keys import Key


def argmax(rng: Key, arr: ArrayLike, axis: int = -1) -> Int[Array, "..."]:
    """Indices of the largest values along ``axis``, each of the tied ones equally likely; traceable.

    NaN counts as the largest value, as in NumPy.
    """
    arr = jnp.asarray(arr)
    return _pick(rng, arr, jnp.max(arr, axis=axis, keepdims=True), axis)


def argmin(rng: Key, arr: ArrayLike, axis: int = -1) -> Int[Array, "..."]:
    """Indices of the smallest values along ``axis``, each of the tied ones equally likely; traceable.

    NaN counts as the smallest value, as in NumPy.
    """
    arr = jnp.asarray(arr)
    return _pick(rng, arr, jnp.min(arr, axis=axis, keepdims=True), axis)


def _pick(rng: Key, arr: Array, extreme: Array, axis: int) -> Int[Array, "..."]:
    tied = (arr == extreme) | (arr != arr)
    # 31 random bits, 1 to 2^31: the largest among the tied wins, and none of the others, which get 0.
    ticket = (jax.random.bits(rng, arr.shape, jnp.uint32) >> 1) + 1
    return jnp.argmax(jnp.where(tied, ticket, 0), axis=axis)


def clipped_logit(x: ArrayLike, epsilon: float = 1e-15) -> Float[Array, "..."]:
    """``log(x) - log(1 - x)`` where both arguments are at least ``epsilon``: finite at 0 and 1."""
    x = jnp.asarray(x)
    return jnp.log(jnp.maximum(x, epsilon)) - jnp.log(jnp.maximum(1 - x, epsilon))
