"""What callers pass, one step at a time: checked numbers, and arrays with a batch axis of one."""

from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from triax.core.errors import OutOfRangeError

_SCALARS = (int, float, np.generic)
_NUMBERS = (int, float)
LARGEST = float(np.finfo(np.float32).max)
"""The largest number of float32."""


def as_number(who: str, name: str, value: Any) -> float:
    """A Python or NumPy number, a truth value or an array with one element, as a float.

    ``TypeError`` for anything else, ``ValueError`` for NaN, infinities and what float32 cannot hold.
    """
    if not isinstance(value, _NUMBERS):
        value = _only_element(who, name, value, "a number")
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{who}: {name} must be finite in float32; got {value}")
    return float(value)


def as_logp(who: str, name: str, value: Any) -> float:
    """A number that is no truth value, which is what five positional arguments of ``env.step`` would bring here."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{who}: {name} must be a number, the log-propensity of the action; got {value}. It comes after done: pass"
            " truncated=... by name."
        )
    return as_number(who, name, value)


def as_truth(who: str, name: str, value: Any) -> bool:
    """A truth value of any kind: ``bool``, ``np.bool_``, the numbers 0 and 1, an array of one of them."""
    if value is True or value is False:
        return value
    element = _only_element(who, name, value, "a truth value")
    if element not in (0, 1):
        raise TypeError(f"{who}: {name} must be a truth value (True, False, 0 or 1); got {value!r}")
    return bool(element)


def as_weight(who: str, name: str, value: Any) -> float:
    """A number above zero; ``OutOfRangeError`` for others."""
    weight = as_number(who, name, value)
    if not weight > 0:
        raise OutOfRangeError(f"{who}: {name} must be a positive number; got {value!r}")
    return weight


def as_discount(who: str, name: str, value: Any) -> float:
    """A number in [0, 1]; ``OutOfRangeError`` for others."""
    discount = as_number(who, name, value)
    if not 0 <= discount <= 1:
        raise OutOfRangeError(f"{who}: {name} must be a number in [0, 1]; got {value!r}")
    return discount


def _only_element(who: str, name: str, value: Any, expected: str) -> float:
    if isinstance(value, str | bytes):
        raise TypeError(f"{who}: {name} must be {expected}; got {value!r}")
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise TypeError(
            f"{who}: {name} must be {expected}; got {type(value).__name__} of shape {array.shape}"
            f" and dtype {array.dtype}"
        )
    return float(array.item())


def as_row(who: str, name: str, value: Any) -> PyTree:
    """A copy of one observation or action, every leaf a NumPy array with a batch axis of one.

    Dtypes stay as they are. ``TypeError`` for ``None`` and for leaves that are no arrays.
    """
    if type(value) is np.ndarray:
        row = value.copy()[None]
    elif isinstance(value, _SCALARS):
        row = np.array(value)[None]
    elif value is None:
        raise TypeError(f"{who}: {name} must be an array, a number or a pytree of these; got None")
    else:
        return jax.tree.map(lambda leaf: _leaf_row(who, name, leaf), value)
    return _refuse_objects(who, name, row)


def as_shared_row(who: str, name: str, value: Any) -> PyTree:
    """Like ``as_row``, but read-only, because several transitions will share it."""
    row = as_row(who, name, value)
    if type(row) is np.ndarray:
        row.flags.writeable = False
    else:
        for leaf in jax.tree.leaves(row):
            leaf.flags.writeable = False
    return row


def check_alike(who: str, name: str, row: PyTree, other_name: str, other: PyTree) -> None:
    """``ValueError`` unless both rows have the same structure and shapes."""
    if type(row) is np.ndarray and type(other) is np.ndarray:
        if row.shape == other.shape:
            return
    elif jax.tree.structure(row) == jax.tree.structure(other) and _shapes(row) == _shapes(other):
        return
    raise ValueError(
        f"{who}: {name} must have the structure and shapes of {other_name}, {_describe(other)}; got {_describe(row)}"
    )


def _leaf_row(who: str, name: str, leaf: Any) -> np.ndarray:
    return _refuse_objects(who, name, np.array(leaf)[None])


def _refuse_objects(who: str, name: str, row: np.ndarray) -> np.ndarray:
    if row.dtype.hasobject:
        raise TypeError(f"{who}: {name} must be an array, a number or a pytree of these; got an object: {row[0]!r}")
    return row


def _shapes(row: PyTree) -> list[tuple[int, ...]]:
    return [leaf.shape for leaf in jax.tree.leaves(row)]


def _describe(row: PyTree) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape[1:])}", row))
