"""The bounds of a ``Box``: which count as finite, and as arrays that JAX can hold."""

from dataclasses import dataclass

import jax
import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Shaped

HUGE = 1e18
"""Bounds of this size and beyond count as infinite: their square is not far from what float32 can hold."""


@dataclass(frozen=True)
class BoxBounds:
    """Bounds in the canonical dtype of JAX (float64 becomes float32), and by component whether they exist."""

    low: Shaped[np.ndarray, "..."]
    high: Shaped[np.ndarray, "..."]
    has_low: Bool[np.ndarray, "..."]
    has_high: Bool[np.ndarray, "..."]

    @classmethod
    def of(cls, space: spaces.Box) -> "BoxBounds":
        """The bounds of ``space``; one that the dtype cannot hold becomes the last value that it can."""
        dtype = canonical_dtype(space)
        low, high = (_into(bound, dtype) for bound in (space.low, space.high))
        return cls(
            low=low,
            high=high,
            has_low=np.asarray(space.bounded_below & (space.low.astype(np.float64) > -HUGE)),
            has_high=np.asarray(space.bounded_above & (space.high.astype(np.float64) < HUGE)),
        )


def canonical_dtype(space: spaces.Space) -> np.dtype:
    """The dtype that elements of ``space`` have inside ``jit``."""
    return np.dtype(jax.dtypes.canonicalize_dtype(space.dtype))


def _into(bound: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu":
        ours, theirs = np.iinfo(dtype), np.iinfo(bound.dtype)
        bound = np.clip(bound, max(ours.min, theirs.min), min(ours.max, theirs.max))
    with np.errstate(over="ignore"):
        return np.asarray(bound, dtype)
