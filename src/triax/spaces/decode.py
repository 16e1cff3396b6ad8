"""From clean arrays, as a jitted call returns them, to members of a space."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from triax.spaces.checks import check_space, describe

Decoder = Callable[[Any], Any]


def decoder(space: spaces.Space) -> Decoder:
    """A fast function from the clean arrays of one element to a member: ``decode(x) in space``.

    ``Discrete`` gives a Python int, ``Box``, ``MultiDiscrete`` and ``MultiBinary`` writable NumPy arrays of
    the space's dtype (a ``Box`` clips: float64 bounds may lie a rounding error inside those in float32),
    ``Tuple`` a tuple, ``Dict`` a dict.
    """
    check_space(space, who="decoder", argument="space")
    return _decoder(space)


def batch_decoder(space: spaces.Space) -> Decoder:
    """As :func:`decoder` for a batch: all leaves, ``Discrete`` too, are NumPy arrays with a leading axis."""
    check_space(space, who="batch_decoder", argument="space")
    return _decoder(space, is_batch=True)


@functools.singledispatch
def _decoder(space: spaces.Space, is_batch: bool = False) -> Decoder:
    raise NotImplementedError(f"no decoding of {describe(space)}")


@_decoder.register
def _(space: spaces.Discrete, is_batch: bool = False) -> Decoder:
    dtype = space.dtype
    return (lambda x: np.array(x, dtype)) if is_batch else int


@_decoder.register
def _(space: spaces.Box, is_batch: bool = False) -> Decoder:
    dtype = space.dtype
    has_low, has_high = bool(space.bounded_below.any()), bool(space.bounded_above.any())
    low, high = space.low, space.high

    def decode(x: Any) -> np.ndarray:
        array = np.array(x, dtype)
        if has_low:
            np.maximum(array, low, out=array)
        if has_high:
            np.minimum(array, high, out=array)
        return array

    return decode


@_decoder.register(spaces.MultiDiscrete)
@_decoder.register(spaces.MultiBinary)
def _(space: spaces.MultiDiscrete | spaces.MultiBinary, is_batch: bool = False) -> Decoder:
    dtype = space.dtype
    return lambda x: np.array(x, dtype)


@_decoder.register(spaces.Tuple)
def _(space: Any, is_batch: bool = False) -> Decoder:
    parts = tuple(_decoder(part, is_batch) for part in space.spaces)
    return lambda x: tuple([part(value) for part, value in zip(parts, x, strict=True)])


@_decoder.register(spaces.Dict)
def _(space: Any, is_batch: bool = False) -> Decoder:
    parts = {key: _decoder(part, is_batch) for key, part in space.spaces.items()}
    return lambda x: {key: part(x[key]) for key, part in parts.items()}
