"""Distributions of the return: bins over a value range, or quantiles."""

from typing import Any

import numpy as np

from triax.core.numbers import check_number
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
        low, high = (check_number(who, "value_range", bound) for bound in value_range)
    except (TypeError, ValueError):
        raise error from None
    if not low < high:
        raise error
    return low, high


def check_optional_range(value_range: Any, *, who: str) -> tuple[float, float] | None:
    """As ``check_value_range``; ``None`` stands for no range."""
    return None if value_range is None else check_value_range(value_range, who=who)


def binned_values(value_range: tuple[float, float], num_bins: int, transform: ValueTransform) -> BinnedValueDecoding:
    """``num_bins`` bins that cover ``value_range`` in transformed space."""
    low, high = (float(transform.transform_func(np.float32(bound))) for bound in value_range)
    return BinnedValueDecoding(DiscretizedIntervalDist.of_range(low, high, num_bins), transform)


def value_distribution(
    value_range: tuple[float, float] | None, num_bins: int, transform: ValueTransform
) -> BinnedValueDecoding | QuantileValueDecoding:
    """``num_bins`` bins over the range, or as many quantiles of an unbounded value."""
    if value_range is None:
        return QuantileValueDecoding(EmpiricalQuantileDist(num_bins), transform)
    return binned_values(value_range, num_bins, transform)


def describe_values(f: Any) -> str:
    """The form of a distributional function's output, for printing."""
    if f.value_range is None:
        return f"{f.num_bins} quantiles"
    return f"{f.num_bins} bins over {f.value_range}"
