"""Distributions of the return: bins over a value range, or quantiles."""

import math
from typing import Any

import numpy as np

from triax.functions.decoding import BinnedValueDecoding, QuantileValueDecoding
from triax.losses.value_transforms import ValueTransform
from triax.proba_dists import DiscretizedIntervalDist, EmpiricalQuantileDist


def check_value_range(value_range: Any, *, who: str) -> tuple[float, float]:
    """The range as two floats.

    Raises:
        TypeError: it is not a tuple or list of two finite numbers, low < high.
    """
    error = TypeError(f"{who}: value_range must be a pair of two finite numbers, low < high; got {value_range!r}.")
    if not isinstance(value_range, tuple | list | np.ndarray) or len(value_range) != 2:
        raise error
    try:
        low, high = float(value_range[0]), float(value_range[1])
    except (TypeError, ValueError):
        raise error from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise error
    return low, high


def binned_values(value_range: tuple[float, float], num_bins: int, transform: ValueTransform) -> BinnedValueDecoding:
    """``num_bins`` bins that cover ``value_range`` in transformed space."""
    low, high = (float(transform.transform_func(np.float32(bound))) for bound in value_range)
    return BinnedValueDecoding(DiscretizedIntervalDist.of_range(low, high, num_bins), transform)


def quantile_values(num_quantiles: int, transform: ValueTransform) -> QuantileValueDecoding:
    """``num_quantiles`` quantiles of an unbounded value."""
    return QuantileValueDecoding(EmpiricalQuantileDist(num_quantiles), transform)
