"""Functions of arrays that ``jax.numpy`` does not have."""

import numbers
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Num

from triax.core import random
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
    ticket = (random.bits(rng, arr.shape, jnp.uint32) >> 1) + 1
    return jnp.argmax(jnp.where(tied, ticket, 0), axis=axis)


def clipped_logit(x: ArrayLike, epsilon: float = 1e-15) -> Float[Array, "..."]:
    """``log(x) - log(1 - x)`` where both arguments are at least ``epsilon``: finite at 0 and 1."""
    x = jnp.asarray(x)
    return jnp.log(jnp.maximum(x, epsilon)) - jnp.log(jnp.maximum(1 - x, epsilon))


def double_relu(arr: ArrayLike) -> Num[Array, "..."]:
    """Negative and positive parts side by side on the last axis, ``concat(-relu(-x), relu(x))``."""
    arr = jnp.asarray(arr)
    return jnp.concatenate([jnp.minimum(arr, 0), jnp.maximum(arr, 0)], axis=-1)


def idx(arr: Any, axis: int = 0) -> Int[Array, " n"]:
    """``arange`` of the size of one axis, to index it with."""
    return jnp.arange(arr.shape[axis])


def isscalar(num: Any) -> bool:
    """Whether it is a number, or an array that holds exactly one."""
    return np.size(num) == 1 if hasattr(num, "shape") else isinstance(num, numbers.Number)
