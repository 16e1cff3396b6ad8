"""Checkpoints of trainings: written by a callback, read back as what ``initial_state`` takes."""

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from flax import nnx
from jaxtyping import PyTree

from triax.core.modules import SplitModule, write_into
from triax.runs import CheckpointStore, decode_config, encode_config
from triax.runs import load_checkpoint as load_tree
from triax.runs import load_metadata as load_facts

State = TypeVar("State")

NETWORKS = "networks"
"""The part of a checkpoint that holds ``{"params", "variables"}`` of the network that learns: see ``SplitModule``."""


@runtime_checkable
class CheckpointCallback(Protocol):
    """What trainings call with their state and the number of steps so far."""

    def __call__(self, training_state: Any, step: int) -> Any:
        """Save the state, or do anything else with it."""
        ...


@functools.singledispatch
def pack(training_state: Any) -> tuple[PyTree, dict[str, Any]]:
    """What a checkpoint holds of a training: a pytree of arrays, numbers and keys, and facts for JSON.

    Any pytree is its own; register types that know more.
    """
    return training_state, {}


@functools.singledispatch
def unpack(like: Any, tree: PyTree, facts: Mapping[str, Any]) -> Any:
    """The training state of the kind that ``like`` is, from what :func:`pack` gave."""
    return tree


class SavedState:
    """A training state in a checkpoint: what ``initial_state`` of a training takes.

    It is read when a state of the same structure is there to say what its leaves are: no code is stored in a
    checkpoint, and no class is looked up.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts = load_facts(path)
        self.step: int = self.facts["step"]

    def restore(self, like: State) -> State:
        """The state, of the kind that ``like`` is, bit for bit.

        Raises ``ValueError`` that lists the leaves that differ, with expected and found shapes and dtypes.
        """
        tree, facts = load_tree(self.path, pack(like)[0])
        return unpack(like, tree, facts)

    def __repr__(self) -> str:
        return f"SavedState({str(self.path)!r})"


class CheckpointWriter:
    """Writes each state it is called with into a folder of its own: see :func:`make_checkpoint_fn`."""

    def __init__(self, directory: str | os.PathLike, config: Any, keep: int | None, overwrite: bool) -> None:
        self._store = CheckpointStore(directory, keep)
        self._config = None if config is None else encode_config(config)
        self._overwrite = overwrite

    def __call__(self, training_state: Any, step: int) -> None:
        """Save; does nothing where the checkpoint of this step holds exactly this state."""
        step = int(step)
        tree, facts = pack(training_state)
        if self._store.holds(step, tree):
            return
        self._make_room(step)
        self._store.save(step, tree, {**facts, "config": self._config})

    def _make_room(self, step: int) -> None:
        there = [other for other in self._store.steps() if other >= step]
        if there and not self._overwrite:
            raise FileExistsError(
                f"{self._store.directory}: there are checkpoints of the steps {there} already, and they are not of "
                f"what this training did by step {step}. Try another directory, "
                'initial_state=load_checkpoint(...)["training_state"] to continue from the last one, or '
                "make_checkpoint_fn(..., overwrite=True) to remove them."
            )
        self._store.discard_after(step)


def make_checkpoint_fn(
    directory: str | os.PathLike,
    config: Any = None,
    *,
    keep: int | None = None,
    overwrite: bool = False,
) -> CheckpointCallback:
    """A callback that writes ``directory/step_0000500000/`` and so on, each of them whole or not at all.

    Args:
        directory: made when missing; may hold the checkpoints of the run that is resumed.
        config: a dataclass to be stored beside the state.
        keep: only the last ``keep`` are kept; ``None`` for all.
        overwrite: checkpoints of the same or a later step that hold something else are removed; otherwise they
            are an error, ``FileExistsError``, which loses nothing. One that holds the same is left as it is.

    The callback takes any training state that is a pytree of arrays, PRNG keys and numbers; optimizer states,
    carries and environment states included.
    """
    return CheckpointWriter(directory, config, keep, overwrite)


def load_checkpoint(
    path: str | os.PathLike,
    networks: nnx.Module | None = None,
    *,
    config_class: type | None = None,
) -> dict[str, Any]:
    """``{"training_state", "step", "config"}`` of a checkpoint.

    Args:
        path: its folder, or the directory of all, for the last one.
        networks: of the architecture that was trained; its parameters and statistics are overwritten in place.
        config_class: that of the stored config, if it is none of ``triax.algorithms``.

    ``training_state`` is a :class:`SavedState`, for ``initial_state``; ``config`` is ``None`` if none was
    stored, and a dict if its class is not known. Raises ``FileNotFoundError`` or ``CorruptCheckpointError``
    naming the path, and ``ValueError`` listing the leaves that differ; the networks are as before then.
    """
    saved = SavedState(_resolve(Path(path)))
    if networks is not None:
        _overwrite(networks, saved.path)
    return {"training_state": saved, "step": saved.step, "config": _config(saved.facts.get("config"), config_class)}


def _resolve(path: Path) -> Path:
    store = CheckpointStore(path)
    step = store.latest_step()
    return path if step is None else store.path(step)


def _overwrite(networks: nnx.Module, path: Path) -> None:
    _, params, variables = SplitModule.of(networks)
    saved, _ = load_tree(path, {"params": params, "variables": variables}, part=NETWORKS)
    write_into(networks, saved["params"], saved["variables"])


def _config(data: Any, config_class: type | None) -> Any:
    from triax import algorithms

    if data is None:
        return None
    found = config_class or getattr(algorithms, data["class"], None)
    return data if found is None else decode_config(found, data)
