"""Named NumPy arrays in a folder, through Orbax, which is imported when used and kept quiet."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np


def write_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays of any numeric dtype; the folder must not exist, and is complete once it does."""
    with _orbax() as (ocp, checkpointer):
        checkpointer.save(folder.absolute(), args=ocp.args.PyTreeSave(_stored(arrays)))


def read_arrays(folder: Path, structs: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, np.ndarray]:
    """The arrays that ``write_arrays`` wrote under these names.

    Raises ``ValueError`` when one has not the given shape and dtype, and whatever Orbax does for files that
    are missing or damaged.
    """
    with _orbax() as (ocp, checkpointer):
        arguments = {name: ocp.RestoreArgs(restore_type=np.ndarray) for name in _stored(structs)}
        found = checkpointer.restore(folder.absolute(), args=ocp.args.PyTreeRestore(restore_args=arguments))
    return {
        name: _checked(name, struct, found.get(name)) if _size(struct) else np.zeros(struct.shape, struct.dtype)
        for name, struct in structs.items()
    }


def _stored(leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Without empty arrays, and with one that is not: Orbax refuses to write nothing."""
    return {name: leaf for name, leaf in leaves.items() if _size(leaf)} | {"count": np.asarray(len(leaves))}


def _size(leaf: Any) -> int:
    return int(np.prod(leaf.shape))


def _checked(name: str, struct: jax.ShapeDtypeStruct, array: Any) -> np.ndarray:
    if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != (struct.shape, struct.dtype):
        raise ValueError(f"array {name!r}: expected {struct}, got {getattr(array, 'dtype', array)}.")
    return array


@contextlib.contextmanager
def _orbax() -> Iterator[tuple[Any, Any]]:
    """Orbax and a checkpointer, without its log lines below errors, and with logging left as it was.

    Orbax logs through absl, which calls ``logging.basicConfig`` when the root logger has no handler.
    """
    root, absl = logging.getLogger(), logging.getLogger("absl")
    handler, level = logging.NullHandler(), absl.level
    root.addHandler(handler)
    absl.setLevel(logging.ERROR)
    try:
        import orbax.checkpoint as ocp

        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
            yield ocp, checkpointer
    finally:
        absl.setLevel(level)
        root.removeHandler(handler)
