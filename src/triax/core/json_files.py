"""Standard JSON for what is saved: numbers that are not finite included, whole files or none."""

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""How numbers outside standard JSON are spelled, as strings: ``float`` reads each of them."""


@functools.singledispatch
def encode_json(value: Any, name: str = "value") -> Any:
    """The value in terms of standard JSON.

    Takes dicts with string keys, lists, tuples (they come back as lists), strings, numbers, truth values,
    ``None``, and NumPy or JAX scalars. NaN and infinities become the strings of :data:`NON_FINITE`.

    Raises ``TypeError`` for anything else, and ``ValueError`` for a string that spells such a number;
    both name the place, which starts with ``name``.
    """
    raise TypeError(
        f"{name}: expected a dict, list, tuple, string, number, truth value or None; got "
        f"{type(value).__name__}. Arrays belong into the tree of a checkpoint."
    )


@encode_json.register(int)  # bool included
@encode_json.register(type(None))
def _encode_as_is(value: Any, name: str = "value") -> Any:
    return value


@encode_json.register(float)
def _encode_float(value: float, name: str = "value") -> float | str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


@encode_json.register(str)
def _encode_string(value: str, name: str = "value") -> str:
    if value in NON_FINITE:
        raise ValueError(f"{name}: the string {value!r} would be read back as a number. Try another string.")
    return str(value)


@encode_json.register(Mapping)
def _encode_mapping(value: Mapping, name: str = "value") -> dict[str, Any]:
    require_string_keys(value, name)
    return {key: encode_json(item, f"{name}[{key!r}]") for key, item in value.items()}


@encode_json.register(list)
@encode_json.register(tuple)
def _encode_sequence(value: list | tuple, name: str = "value") -> list:
    return [encode_json(item, f"{name}[{index}]") for index, item in enumerate(value)]


@encode_json.register(np.ndarray)
@encode_json.register(np.generic)
@encode_json.register(jax.Array)
def _encode_scalar_array(value: Any, name: str = "value") -> Any:
    if np.shape(value) != ():
        raise TypeError(
            f"{name}: only scalar arrays can be written as JSON; got shape {np.shape(value)}. "
            "Arrays belong into the tree of a checkpoint."
        )
    return encode_json(np.asarray(value).astype(object).item(), name)


def require_string_keys(mapping: Mapping, name: str) -> None:
    """``TypeError`` that names the place and the first key that is no string."""
    for key in mapping:
        if not isinstance(key, str):
            raise TypeError(f"{name}: keys must be strings, got {key!r} of type {type(key).__name__}.")


def decode_json(value: Any) -> Any:
    """Undoes :func:`encode_json`, where tuples have become lists."""
    if isinstance(value, dict):
        return {key: decode_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode_json(item) for item in value]
    return NON_FINITE.get(value, value) if isinstance(value, str) else value


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes standard JSON: readers see the old file or all of the new one, whatever happens meanwhile."""
    path = Path(path)
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_json(path: str | os.PathLike) -> Any:
    """What a JSON file holds; ``ValueError`` naming the file when it is not JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:  # of the encoding or the syntax
        raise ValueError(f"{path} is not a JSON file: {error}") from error
