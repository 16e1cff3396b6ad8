"""Checks of single numbers: coefficients and seeds that users set."""

import math
import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_FLOAT32 = np.finfo(np.float32)
_LARGEST, _SMALLEST = float(_FLOAT32.max), float(_FLOAT32.tiny)  # below, devices may take a number for 0


def check_number(
    who: str,
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    positive: bool = False,
) -> float:
    """``value``, a number or an array without axes, as a float that is finite in float32 too.

    It must be in ``[low, high]`` and, if ``positive``, greater than 0 in float32. ``who`` and ``name`` tell whose
    number it is. Raises ``TypeError`` if it is no number (a truth value is none), ``ValueError`` otherwise.
    """
    if not _is_number(value):
        raise TypeError(f"{who}: {name} must be a number; got {value!r}.")
    number = float(value)
    if -_LARGEST <= number <= _LARGEST and low <= number <= high and (number >= _SMALLEST or not positive):
        return number
    raise ValueError(f"{who}: {name} must be {_wanted(low, high, positive)}; got {number}.")


def check_count(who: str, name: str, value: Any, *, low: int = 1) -> int:
    """``value`` as an int; ``TypeError`` unless it is an integer, ``ValueError`` if it is below ``low``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{who}: {name} must be an int; got {value!r}.")
    number = int(value)
    if number < low:
        raise ValueError(f"{who}: {name} must be at least {low}; got {number}.")
    return number


def check_seed(name: str, seed: Any) -> int:
    """A seed as an int in [0, 2^32), which is what keys tell apart.

    Raises ``TypeError`` unless it is an integer, ``ValueError`` unless it is in the range.
    """
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, numbers.Integral):
        raise TypeError(f"{name} must be an int or None; got {seed!r}.")
    number = int(seed)
    if not 0 <= number < 2**32:
        raise ValueError(f"{name} must be in [0, 2^32); got {number}.")
    return number


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        is_real = value.dtype.kind in "iuf" or jnp.issubdtype(value.dtype, np.floating)  # bfloat16 is of kind "V"
        return value.ndim == 0 and is_real
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _wanted(low: float, high: float, positive: bool) -> str:
    """The range in words."""
    if positive:
        return "positive and finite"
    if high < math.inf:
        return f"in [{low:g}, {high:g}]"
    return "finite" if low == -math.inf else f"finite and at least {low:g}"
