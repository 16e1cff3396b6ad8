"""Finite differences of stacked frames: position, velocity, acceleration, ..."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Num

from triax.core.checks import DTypeLike


def diff_transform_matrix(num_frames: Any, dtype: DTypeLike = "float32") -> Num[Array, "n n"]:
    """The matrix of backward differences of orders ``n - 1`` (first column) to zero (last column).

    Rows belong to frames, oldest first; column ``n - 1 - k`` holds the signed binomial coefficients of
    order ``k``. Rows for four frames: ``[-1,0,0,0], [3,1,0,0], [-3,-2,-1,0], [1,1,1,1]``. Raises
    ``TypeError`` unless ``num_frames`` is a positive int.
    """
    if isinstance(num_frames, bool) or not isinstance(num_frames, int | np.integer) or num_frames < 1:
        raise TypeError(f"diff_transform_matrix: num_frames must be a positive int; got {num_frames!r}.")
    n = int(num_frames)
    ages, orders = range(n - 1, -1, -1), range(n - 1, -1, -1)
    rows = [[(-1) ** age * math.comb(order, age) for order in orders] for age in ages]
    return jnp.asarray(np.array(rows, dtype=jnp.dtype(dtype)))


def diff_transform(X: ArrayLike, dtype: DTypeLike = "float32") -> Num[Array, "*batch n"]:
    """Differences along the last axis, which holds frames, oldest first: the highest order first.

    Three frames give acceleration, velocity and position at the newest frame. Computed and returned in
    ``dtype``.
    """
    frames = jnp.asarray(X).astype(jnp.dtype(dtype))
    return frames @ diff_transform_matrix(frames.shape[-1], dtype)
