"""Readable text for nested data: arrays appear as shape, dtype and range, not as numbers."""

import dataclasses
import functools
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from triax.core.key_types import is_typed_key

_INDENT = "  "


def pretty_print(obj: Any) -> None:
    """Write ``pretty_repr(obj)`` to the standard output."""
    sys.stdout.write(pretty_repr(obj) + "\n")


def pretty_repr(o: Any, d: int = 0) -> str:
    """Indented text of nested dicts, lists, (named) tuples and dataclasses, at depth ``d``.

    Arrays, and objects with a ``to_numpy`` method such as those of pandas, appear as shape, dtype and
    minimum, median and maximum to three significant digits, those of truth values with how many are true.
    """
    return _text(o, d)


@functools.singledispatch
def _text(o: Any, depth: int) -> str:
    if dataclasses.is_dataclass(o) and not isinstance(o, type):
        fields = ((f.name, getattr(o, f.name)) for f in dataclasses.fields(o))
        return _fields(type(o).__name__, fields, depth)
    to_numpy = getattr(o, "to_numpy", None)
    return _summary(type(o).__name__, np.asarray(to_numpy())) if callable(to_numpy) else repr(o)


@_text.register
def _(o: Mapping, depth: int) -> str:
    name = "" if type(o) is dict else type(o).__name__
    entries = [f"{key!r}: {_text(value, depth + 1)}" for key, value in o.items()]
    return name + _block("{", entries, "}", depth)


@_text.register
def _(o: list, depth: int) -> str:
    return _block("[", [_text(item, depth + 1) for item in o], "]", depth)


@_text.register
def _(o: tuple, depth: int) -> str:
    names = getattr(o, "_fields", None)
    if names is not None:
        return _fields(type(o).__name__, zip(names, o, strict=True), depth)
    return _block("(", [_text(item, depth + 1) for item in o], ")", depth)


@_text.register
def _(o: np.ndarray, depth: int) -> str:
    return _summary("array", o)


@_text.register
def _(o: Tracer, depth: int) -> str:
    return f"Array(shape={o.shape}, dtype={o.dtype})"


@_text.register
def _(o: jax.Array, depth: int) -> str:
    if is_typed_key(o):
        return f"Array(shape={o.shape}, dtype={o.dtype})"
    return _summary("Array", np.asarray(o))


def _fields(name: str, fields: Iterable[tuple[str, Any]], depth: int) -> str:
    entries = [f"{field}={_text(value, depth + 1)}" for field, value in fields]
    return name + _block("(", entries, ")", depth)


def _block(opening: str, entries: list[str], closing: str, depth: int) -> str:
    if not entries:
        return opening + closing
    inner = "".join(f"{_INDENT * (depth + 1)}{entry},\n" for entry in entries)
    return f"{opening}\n{inner}{_INDENT * depth}{closing}"


def _summary(name: str, array: np.ndarray) -> str:
    text = f"{name}(shape={array.shape}, dtype={array.dtype}"
    if array.dtype == bool:
        return f"{text}, {np.count_nonzero(array)} true)" if array.size else f"{text})"
    if array.size and any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.integer, jnp.floating)):
        entries = array.astype(np.float64)
        low, middle, high = np.min(entries), np.median(entries), np.max(entries)
        text += f", min={low:.3g}, median={middle:.3g}, max={high:.3g}"
    return text + ")"
