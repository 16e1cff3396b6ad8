"""From one element of a space, as an environment gives it, to arrays of fixed dtype and shape."""

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from triax.spaces.bounds import canonical_dtype
from triax.spaces.checks import check_space, describe, misfit

Encoder = Callable[[Any], Any]


def encoder(space: spaces.Space, *, who: str, argument: str) -> Encoder:
    """A fast function that checks one element of ``space`` and gives it as clean NumPy arrays.

    Clean arrays: ``Discrete`` int32 scalar (``start`` included), ``Box`` its shape in the dtype that JAX uses
    for it (float64 becomes float32), ``MultiDiscrete`` int32, ``MultiBinary`` int8, ``Tuple`` a tuple,
    ``Dict`` a dict. Whatever number types come in, the same dtypes come out, so that ``jit`` compiles once.

    The function raises a ``ValueError`` (naming ``who``, ``argument`` and the leaf) for a wrong shape or
    structure, a discrete value outside the space, a number that the dtype cannot hold, and NaN. Values beyond
    the bounds of a ``Box`` pass.
    """
    check_space(space, who=who, argument=argument)
    return _encoder(space, f"{who}: {argument}")


@functools.singledispatch
def _encoder(space: spaces.Space, place: str) -> Encoder:
    raise NotImplementedError(f"{place}: no encoding of {describe(space)}")


@_encoder.register
def _(space: spaces.Discrete, place: str) -> Encoder:
    first, last = int(space.start), int(space.start) + int(space.n) - 1

    def encode(x: Any) -> np.int32:
        try:
            value = operator.index(x)
        except TypeError:
            value = _integral(x, place, space)
        if first <= value <= last:
            return np.int32(value)
        raise misfit(place, space, f"got {x!r}")

    return encode


def _integral(x: Any, place: str, space: spaces.Space) -> int:
    """The integer that a scalar which is no integer stands for: 2.0 is 2."""
    array = as_numbers(x, place, space)
    if array.shape != () or array != np.floor(array) or np.isinf(array):
        raise misfit(place, space, f"got {_what(x, array)}")
    return int(array)


@_encoder.register
def _(space: spaces.Box, place: str) -> Encoder:
    shape, dtype = space.shape, canonical_dtype(space)
    convert = to_float if dtype.kind == "f" else to_exact

    def encode(x: Any) -> np.ndarray:
        array = convert(x, dtype, place, space)
        if array.shape != shape:
            raise misfit(place, space, f"got shape {array.shape}, expected {shape}")
        return array

    return encode


@_encoder.register
def _(space: spaces.MultiDiscrete, place: str) -> Encoder:
    shape, first, last = space.shape, *discrete_range(space)

    def encode(x: Any) -> np.ndarray:
        array = to_exact(x, np.dtype(np.int32), place, space)
        if array.shape != shape:
            raise misfit(place, space, f"got shape {array.shape}, expected {shape}")
        if np.count_nonzero((array < first) | (array > last)):
            raise misfit(place, space, f"got {x!r}")
        return array

    return encode


@_encoder.register
def _(space: spaces.MultiBinary, place: str) -> Encoder:
    shape = space.shape

    def encode(x: Any) -> np.ndarray:
        array = to_exact(x, np.dtype(np.int8), place, space)
        if array.shape != shape:
            raise misfit(place, space, f"got shape {array.shape}, expected {shape}")
        if np.count_nonzero(array & ~1):
            raise misfit(place, space, f"got {x!r}")
        return array

    return encode


@_encoder.register(spaces.Tuple)
def _(space: Any, place: str) -> Encoder:
    return tuple_encoder(space, place, _encoder)


@_encoder.register(spaces.Dict)
def _(space: Any, place: str) -> Encoder:
    return dict_encoder(space, place, _encoder)


# ------------------------------------------------------------------ shared with batches


# Spaces are Any here: to a type checker gymnasium's Dict is a Mapping[str, Space], and keys may be others.


def tuple_encoder(space: Any, place: str, make: Callable[[Any, str], Encoder]) -> Encoder:
    """Checks the number of parts and encodes each with what ``make`` gives for it."""
    parts = tuple(make(part, f"{place}[{index}]") for index, part in enumerate(space.spaces))
    size = len(parts)

    def encode(x: Any) -> tuple:
        if not isinstance(x, tuple | list) or len(x) != size:
            raise misfit(place, space, f"got {_structure(x)}, expected a tuple of {size}")
        return tuple([part(value) for part, value in zip(parts, x, strict=True)])

    return encode


def dict_encoder(space: Any, place: str, make: Callable[[Any, str], Encoder]) -> Encoder:
    """Checks the keys and encodes each value with what ``make`` gives for it."""
    parts = {key: make(part, f"{place}[{key!r}]") for key, part in space.spaces.items()}

    def encode(x: Any) -> dict:
        if not isinstance(x, Mapping) or x.keys() != parts.keys():
            raise misfit(place, space, f"got {_structure(x)}, expected a dict with the keys {list(parts)}")
        return {key: part(x[key]) for key, part in parts.items()}

    return encode


def discrete_range(space: spaces.MultiDiscrete) -> tuple[np.ndarray, np.ndarray]:
    """First and last value by component, int32."""
    first = space.start.astype(np.int64)
    last = first + space.nvec.astype(np.int64) - 1
    return np.asarray(first, np.int32), np.asarray(last, np.int32)


def to_float(x: Any, dtype: np.dtype, place: str, space: spaces.Space) -> np.ndarray:
    """``x`` in a floating dtype; NaN is refused."""
    array = x if type(x) is np.ndarray and x.dtype == dtype else as_numbers(x, place, space).astype(dtype)
    # x.x is NaN if and only if a component is (infinite squares do not cancel), and costs a fraction of
    # isnan(x).any().
    square = np.vdot(array, array)
    if square != square:
        raise misfit(place, space, f"got NaN in {_what(x, array)}")
    return array


def to_exact(x: Any, dtype: np.dtype, place: str, space: spaces.Space) -> np.ndarray:
    """``x`` in an integer dtype; numbers that change by that are refused."""
    if type(x) is np.ndarray and x.dtype == dtype:
        return x
    numbers = as_numbers(x, place, space)
    with np.errstate(invalid="ignore"):
        array = numbers.astype(dtype)
    if np.count_nonzero(array != numbers):
        raise misfit(place, space, f"got {_what(x, numbers)}, which {dtype} cannot hold")
    return array


def as_numbers(x: Any, place: str, space: spaces.Space) -> np.ndarray:
    """``x`` as an array of real numbers or truth values."""
    try:
        array = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise misfit(place, space, f"got {_structure(x)}, which is no array: {error}") from error
    if array.dtype.kind not in "fiub":
        raise misfit(place, space, f"got {_structure(x)}, expected numbers")
    return array


def _what(x: Any, array: np.ndarray) -> str:
    return repr(x) if array.size <= 16 else f"an array of shape {array.shape}"


def _structure(x: Any) -> str:
    if isinstance(x, Mapping):
        return f"a {type(x).__name__} with the keys {list(x)}"
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}"
    return type(x).__name__
