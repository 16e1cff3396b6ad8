"""Values that compare and hash by what is in them, for compiled programs that are found again by structure."""

import dataclasses
import functools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np


@functools.singledispatch
def frozen(value: Any) -> Hashable:
    """Something that is equal, and hashes alike, for values that hold the same; itself where nothing is known.

    Register types that compare by content but cannot be hashed.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), frozen(vars(value))
    return value


@frozen.register
def _(value: np.ndarray) -> Hashable:
    return value.shape, value.dtype.str, value.tobytes()


@frozen.register(list)
@frozen.register(tuple)
def _(value: Any) -> Hashable:
    return type(value), tuple(map(frozen, value))


@frozen.register(Mapping)
def _(value: Any) -> Hashable:
    return type(value), tuple((key, frozen(part)) for key, part in value.items())
