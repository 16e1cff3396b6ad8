"""Checks of single numbers: coefficients, counts and seeds that users set."""

import math
import numbers
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np

from triax.core.errors import OutOfRangeError

T = TypeVar("T")

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


def positive_int(who: str, name: str, value: Any) -> int:
    """``value`` as an int; ``TypeError`` unless it is one, Python's or NumPy's, ``OutOfRangeError`` below 1."""
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_int and value >= 1:
        return int(value)
    raise (OutOfRangeError if is_int else TypeError)(f"{who}: {name} must be a positive int; got {value!r}")


class Checked(Generic[T]):
    """An attribute of a class that keeps ``check(name of the class, name of the attribute, value)``.

    What ``check`` refuses leaves the old value. ``doc`` says what the attribute is.
    """

    def __init__(self, check: Callable[[str, str, Any], T], doc: str) -> None:
        self._check, self.__doc__ = check, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._kept = name, f"_{name}"

    @overload
    def __get__(self, owner: None, cls: type) -> "Checked[T]": ...
    @overload
    def __get__(self, owner: Any, cls: type) -> T: ...
    def __get__(self, owner: Any, cls: type) -> Any:
        return self if owner is None else getattr(owner, self._kept)

    def __set__(self, owner: Any, value: Any) -> None:
        setattr(owner, self._kept, self._check(type(owner).__name__, self._name, value))


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
