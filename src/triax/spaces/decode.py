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


@functools.singledispatch
def _decoder(space: spaces.Space) -> Decoder:
    raise NotImplementedError(f"no decoding of {describe(space)}")


@_decoder.register
def _(space: spaces.Discrete) -> Decoder:
    return int


@_decoder.register
def _(space: spaces.Box) -> Decoder:
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
def _(space: spaces.MultiDiscrete | spaces.MultiBinary) -> Decoder:
    dtype = space.dtype
    return lambda x: np.array(x, dtype)


@_decoder.register(spaces.Tuple)
def _(space: Any) -> Decoder:
    parts = tuple(_decoder(part) for part in space.spaces)
    return lambda x: tuple([part(value) for part, value in zip(parts, x, strict=True)])


@_decoder.register(spaces.Dict)
def _(space: Any) -> Decoder:
    parts = {key: _decoder(part) for key, part in space.spaces.items()}
    return lambda x: {key: part(x[key]) for key, part in parts.items()}
