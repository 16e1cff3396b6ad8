"""Checkpoints: a pytree of arrays and a dict of facts, written as a whole or not at all."""

import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from triax.core.errors import TriaxError
from triax.core.json_files import decode_json, encode_json, read_json, write_json
from triax.core.leaves import (
    describe_leaf,
    from_json,
    named_leaves,
    restore_leaf,
    stored_struct,
    to_json,
    to_numpy,
)
from triax.core.trees import describe_difference
from triax.runs.array_files import read_arrays, write_arrays

SCHEMA = 1
"""Version of the layout of a checkpoint; other versions are refused."""

_ARRAYS, _CONTENT = "arrays", "checkpoint.json"


class CorruptCheckpointError(TriaxError, ValueError):
    """A checkpoint that cannot be read; the message names its path."""


class Checkpoint(NamedTuple):
    """What a checkpoint holds."""

    tree: Any
    metadata: dict[str, Any]


def save_checkpoint(
    path: str | os.PathLike, tree: PyTree, metadata: dict[str, Any] | None = None, *, overwrite: bool = False
) -> None:
    """Writes a checkpoint: a folder ``path``, which appears under its name when it is complete.

    Args:
        path: the folder; its parents are made.
        tree: any pytree of JAX arrays, NumPy arrays and scalars, PRNG keys (typed or raw) and Python numbers;
            waits until they are computed.
        metadata: facts beside it in terms of JSON: strings, numbers, lists, ``None``, dicts with string keys.
        overwrite: replace a checkpoint that is there.

    The arrays are written with Orbax, everything else as ``checkpoint.json``. Raises ``FileExistsError`` when
    there is something at ``path``, and ``TypeError`` naming the leaf that cannot be saved; nothing is left
    then.
    """
    path = Path(path)
    leaves = named_leaves(tree)
    facts = encode_json({} if metadata is None else metadata, "metadata")
    for name, leaf in leaves.items():
        describe_leaf(name, leaf)  # refuses what cannot be saved
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path}: there is something already. Try another name, or overwrite=True.")
    values = to_numpy(leaves)
    files = {name: str(number) for number, name in enumerate(values)}  # names may hold characters that files may not
    records = {name: record | {"array": files[name]} for name, record in _records(leaves, values).items()}
    arrays = {files[name]: value for name, value in values.items()}
    temporary, old = beside(path, "tmp"), beside(path, "old")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        write_arrays(temporary / _ARRAYS, arrays)
        write_json(temporary / _CONTENT, {"schema": SCHEMA, "metadata": facts, "leaves": records})
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            os.rename(path, old)
        os.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        if old.exists() and not path.exists():
            os.rename(old, path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(path: str | os.PathLike, like: PyTree, *, part: str | None = None) -> Checkpoint:
    """The tree and the metadata of a checkpoint.

    Args:
        path: the folder that ``save_checkpoint`` wrote.
        like: a tree of the same structure, for instance the state of a new agent, or of ``ShapeDtypeStruct``.
            Each leaf comes back as its kind: JAX array (with the sharding of ``like``), NumPy array, Python
            number. Its values are not looked at.
        part: only the tree under this name, such as ``"agent/params"``; ``like`` is then one like that part.

    Raises ``FileNotFoundError`` or ``CorruptCheckpointError`` naming the path, and ``ValueError`` listing the
    leaves that differ, with expected and found shapes and dtypes.
    """
    path = _present(Path(path))
    content = _read_content(path)
    structs = _structs(path, content)
    full_names = _names_in(part, structs)
    leaves = named_leaves(like)
    expected = {name: describe_leaf(name, leaf) for name, leaf in leaves.items()}
    found = {name: structs[full_name] for name, full_name in full_names.items()}
    difference = describe_difference(expected, found, part or "tree")
    if difference is not None:
        raise ValueError(f"{path}: the checkpoint is of another structure. {difference}")
    values = _read_values(path, structs, content["leaves"])
    restored = [restore_leaf(leaf, values[full_names[name]]) for name, leaf in leaves.items()]
    tree = jax.tree.unflatten(jax.tree.structure(like), restored)
    return Checkpoint(tree, decode_json(content["metadata"]))


def load_arrays(path: str | os.PathLike) -> Checkpoint:
    """The values of all leaves as NumPy arrays by their paths, such as ``"params/dense/kernel"``, and the metadata.

    For trees whose shapes are not known beforehand, such as replay that is filling up. PRNG keys come as their data.
    Raises as :func:`load_checkpoint`.
    """
    path = _present(Path(path))
    content = _read_content(path)
    values = _read_values(path, _structs(path, content), content["leaves"])
    return Checkpoint(values, decode_json(content["metadata"]))


def holds(path: str | os.PathLike, tree: PyTree) -> bool:
    """Whether the checkpoint at ``path`` is of exactly this tree, by names, shapes, dtypes and checksums."""
    leaves = named_leaves(tree)
    saved = _read_content(_present(Path(path)))["leaves"]
    written = {name: {key: record[key] for key in record if key != "array"} for name, record in saved.items()}
    return written == _records(leaves, to_numpy(leaves))


def load_metadata(path: str | os.PathLike) -> dict[str, Any]:
    """The metadata of a checkpoint alone; raises as ``load_checkpoint``."""
    return decode_json(_read_content(_present(Path(path)))["metadata"])


def beside(path: Path, purpose: str) -> Path:
    """Where a checkpoint is while it is written (``tmp``) or replaced (``old``): a hidden neighbour."""
    return path.with_name(f".{path.name}.{purpose}")


def _records(leaves: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """What is written of each leaf besides its values."""
    return {name: to_json(name, leaf) | {"crc32": zlib.crc32(values[name].tobytes())} for name, leaf in leaves.items()}


def _names_in(part: str | None, names: Mapping[str, Any]) -> dict[str, str]:
    """Names of leaves relative to the part, and their full ones."""
    if part is None:
        return {name: name for name in names}
    inside = {name.removeprefix(f"{part}/"): name for name in names if name.startswith(f"{part}/")}
    return inside | ({"": part} if part in names else {})


def _structs(path: Path, content: Mapping[str, Any]) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the leaves by name."""
    try:
        return {name: from_json(record) for name, record in content["leaves"].items()}
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CorruptCheckpointError(f"{path}: {_CONTENT} does not describe its leaves: {error}") from error


def _read_values(
    path: Path, structs: Mapping[str, jax.ShapeDtypeStruct], records: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The leaves' values by name; ``CorruptCheckpointError`` where one is not what was written."""
    try:
        wanted = {records[name]["array"]: stored_struct(struct) for name, struct in structs.items()}
        arrays = read_arrays(path / _ARRAYS, wanted)
        values = {name: arrays[records[name]["array"]] for name in structs}
        damaged = [name for name in values if zlib.crc32(values[name].tobytes()) != records[name]["crc32"]]
        if damaged:
            raise ValueError(f"the values of the leaves {damaged[:8]} are damaged.")
    except Exception as error:  # Orbax and TensorStore raise all kinds for missing and damaged files
        raise CorruptCheckpointError(f"{path}: its arrays cannot be read: {error}") from error
    return values


def _present(path: Path) -> Path:
    """Where the checkpoint is: at ``path``, or beside it when its replacement was killed half-way."""
    old = beside(path, "old")
    return old if old.exists() and not path.exists() else path


def _read_content(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: there is no checkpoint.")
    try:
        content = read_json(path / _CONTENT)
    except (ValueError, OSError) as error:
        raise CorruptCheckpointError(f"{path}: {_CONTENT} cannot be read: {error}") from error
    found = content.get("schema") if isinstance(content, dict) else None
    if found != SCHEMA or not {"metadata", "leaves"} <= set(content):
        raise CorruptCheckpointError(f"{path}: expected a checkpoint of schema {SCHEMA}, got schema {found!r}.")
    return content
