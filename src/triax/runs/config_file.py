"""Configs on disk: dataclasses to JSON and back, field by field, with nothing guessed."""

import dataclasses
import enum
import functools
import operator
import os
import platform
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any, TypeVar

from triax._version import __version__
from triax.core.errors import TriaxError
from triax.core.json_files import (
    NON_FINITE,
    decode_json,
    encode_json,
    read_json,
    require_string_keys,
    write_json,
)

SCHEMA = 1
"""Version of the layout of ``config.json``; other versions are refused."""

Config = TypeVar("Config")


class ConfigError(TriaxError, ValueError):
    """A config that does not fit its class or its file; the message names the field."""


def save_config(path: str | os.PathLike, config: Any) -> None:
    """Writes a dataclass as JSON, with the versions of triax, Python and the packages beneath."""
    write_json(path, {"schema": SCHEMA, "versions": installed_versions(), "config": encode_config(config)})


def installed_versions() -> dict[str, str]:
    """Those of triax, Python and the packages that decide what numbers come out."""
    packages = {package: metadata.version(package) for package in ("jax", "flax", "optax", "numpy", "gymnasium")}
    return {"triax": __version__, "python": platform.python_version(), **packages}


def load_config(path: str | os.PathLike, cls: type[Config]) -> Config:
    """The config of a file that ``save_config`` wrote.

    Raises ``ConfigError`` naming the field that is unknown, missing or has a value of another type; fields
    with defaults too must be there.
    """
    content = read_config(path)
    try:
        return decode_config(cls, content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def read_config(path: str | os.PathLike) -> Any:
    """The config of such a file in terms of JSON, for whoever does not know its class yet.

    Raises ``ConfigError`` when it is no file of this schema.
    """
    return _read(path)["config"]


def read_versions(path: str | os.PathLike) -> dict[str, str]:
    """The versions that are written beneath the config of such a file; raises as :func:`read_config`."""
    return dict(_read(path).get("versions", {}))


def _read(path: str | os.PathLike) -> dict[str, Any]:
    content = read_json(path)
    found = content.get("schema") if isinstance(content, dict) else None
    if found != SCHEMA or "config" not in content:
        raise ConfigError(f"{path}: expected a config of schema {SCHEMA}, got schema {found!r}.")
    return content


@functools.singledispatch
def _encode(value: Any, name: str) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        encoded = {field: _encode(getattr(value, field), f"{name}.{field}") for field in fields}
        return {"class": type(value).__name__} | encoded
    return encode_json(value, name)


@_encode.register
def _encode_enum(value: enum.Enum, name: str) -> str:
    return value.name


@_encode.register
def _encode_path(value: PurePath, name: str) -> str:
    return str(value)


@_encode.register(list)
@_encode.register(tuple)
def _encode_sequence(value: list | tuple, name: str) -> list:
    return [_encode(item, f"{name}[{index}]") for index, item in enumerate(value)]


@_encode.register(Mapping)
def _encode_mapping(value: Mapping, name: str) -> dict[str, Any]:
    require_string_keys(value, name)
    return {key: _encode(item, f"{name}[{key!r}]") for key, item in value.items()}


def encode_config(config: Any) -> dict[str, Any]:
    """A dataclass in terms of standard JSON: its fields, and ``"class"``, its name; nested ones alike.

    Takes what :func:`~triax.core.json_files.encode_json` does, and enums (by name) and paths. Raises
    ``TypeError`` naming the field otherwise.
    """
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"encode_config: expected an instance of a dataclass, got {config!r}.")
    return _encode(config, type(config).__name__)


def decode_config(cls: type[Config], data: Any) -> Config:
    """Undoes ``encode_config``: an instance of ``cls`` whose fields fit their annotations."""
    return _decode(cls, data, cls.__name__)


def _decode(annotation: Any, value: Any, name: str) -> Any:
    if dataclasses.is_dataclass(annotation):
        return _decode_dataclass(annotation, value, name)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _decode_enum(annotation, value, name)
    decoder = _DECODERS.get(typing.get_origin(annotation) or annotation)
    if decoder is None:
        raise ConfigError(f"{name}: values of type {annotation!r} cannot be loaded from JSON.")
    return decoder(annotation, value, name)


def _decode_enum(annotation: Any, value: Any, name: str) -> Any:
    """A member by its name; flags that are combined are written as ``A|B``."""
    members = annotation.__members__
    names = value.split("|") if isinstance(value, str) and issubclass(annotation, enum.Flag) else [value]
    if not all(isinstance(member, str) and member in members for member in names):
        raise _misfit(name, f"one of {list(members)}", value)
    return functools.reduce(operator.or_, (members[member] for member in names))


def _decode_dataclass(cls: Any, value: Any, name: str) -> Any:
    if not isinstance(value, dict) or value.get("class") != cls.__name__:
        found = value.get("class") if isinstance(value, dict) else value
        raise _misfit(name, f"a {cls.__name__}", found)
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    unknown = [key for key in value if key not in fields and key != "class"]
    missing = [field for field in fields if field not in value]
    if unknown or missing:
        wrong = [f"unknown field {key!r}" for key in unknown] + [f"missing field {key!r}" for key in missing]
        raise ConfigError(f"{name}: {', '.join(wrong)}. {cls.__name__} has the fields {fields}.")
    hints = typing.get_type_hints(cls)
    return cls(**{field: _decode(hints[field], value[field], f"{name}.{field}") for field in fields})


def _decode_union(annotation: Any, value: Any, name: str) -> Any:
    for arm in typing.get_args(annotation):
        named = isinstance(value, dict) and value.get("class") == getattr(arm, "__name__", None)
        if named and dataclasses.is_dataclass(arm):
            return _decode(arm, value, name)  # so that its own errors are told
    for arm in typing.get_args(annotation):
        try:
            return _decode(arm, value, name)
        except ConfigError:
            continue
    raise _misfit(name, str(annotation), value)


def _decode_literal(annotation: Any, value: Any, name: str) -> Any:
    for choice in typing.get_args(annotation):
        if type(choice) is type(value) and choice == value:
            return choice
    raise _misfit(name, f"one of {list(typing.get_args(annotation))}", value)


def _decode_float(annotation: Any, value: Any, name: str) -> float:
    spelled = isinstance(value, str) and value in NON_FINITE
    if spelled or (isinstance(value, int | float) and not isinstance(value, bool)):
        return float(value)
    raise _misfit(name, "a float", value)


def _decode_path(annotation: Any, value: Any, name: str) -> Path:
    return Path(_decode(str, value, name))


def _decode_tuple(annotation: Any, value: Any, name: str) -> tuple:
    kinds = typing.get_args(annotation)
    if isinstance(value, list) and len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if not isinstance(value, list) or len(kinds) != len(value):
        raise _misfit(name, str(annotation), value)
    pairs = zip(kinds, value, strict=True)
    return tuple(_decode(kind, item, f"{name}[{index}]") for index, (kind, item) in enumerate(pairs))


def _decode_list(annotation: Any, value: Any, name: str) -> list:
    if not isinstance(value, list):
        raise _misfit(name, "a list", value)
    (kind,) = typing.get_args(annotation) or (Any,)
    return [_decode(kind, item, f"{name}[{index}]") for index, item in enumerate(value)]


def _decode_dict(annotation: Any, value: Any, name: str) -> dict:
    if not isinstance(value, dict):
        raise _misfit(name, "a dict", value)
    _, kind = typing.get_args(annotation) or (str, Any)
    return {key: _decode(kind, item, f"{name}[{key!r}]") for key, item in value.items()}


def _exactly(kind: type) -> Callable[[Any, Any, str], Any]:
    def decode(annotation: Any, value: Any, name: str) -> Any:
        if type(value) is not kind:
            raise _misfit(name, f"of type {kind.__name__}", value)
        return value

    return decode


def _misfit(name: str, expected: str, value: Any) -> ConfigError:
    return ConfigError(f"{name}: expected {expected}, got {value!r}.")


_DECODERS: dict[Any, Callable[[Any, Any, str], Any]] = {
    int: _exactly(int),
    bool: _exactly(bool),
    str: _exactly(str),
    types.NoneType: _exactly(types.NoneType),
    float: _decode_float,
    Any: lambda annotation, value, name: decode_json(value),
    Path: _decode_path,
    typing.Union: _decode_union,
    types.UnionType: _decode_union,
    typing.Literal: _decode_literal,
    tuple: _decode_tuple,
    list: _decode_list,
    Sequence: lambda annotation, value, name: tuple(_decode_list(annotation, value, name)),
    dict: _decode_dict,
    Mapping: _decode_dict,
}
