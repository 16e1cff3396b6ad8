"""The checkpoints of one run: one folder a step, of which the last few are kept."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

from jaxtyping import PyTree

from triax.runs.checkpoints import (
    Checkpoint,
    beside,
    holds,
    load_arrays,
    load_checkpoint,
    load_metadata,
    save_checkpoint,
)

_NAME = re.compile(r"step_(\d{10,})|\.step_(\d{10,})\.old")
"""A checkpoint, or one whose replacement was killed half-way: ``load_checkpoint`` finds that one too."""


class CheckpointStore:
    """Checkpoints ``step_0000001000/``, ... in a folder, of which those of the last ``keep`` steps stay.

    ``keep=None`` keeps all. One process writes at a time: what a killed one left unfinished is removed.
    """

    def __init__(self, directory: str | os.PathLike, keep: int | None = 3):
        if keep is not None and keep < 1:
            raise ValueError(f"CheckpointStore: keep must be at least 1, or None for all; got {keep}.")
        self.directory = Path(directory)
        self.keep = keep

    def path(self, step: int) -> Path:
        """The folder of that step's checkpoint, there or not."""
        if step < 0:
            raise ValueError(f"CheckpointStore: a step must not be negative, got {step}.")
        return self.directory / f"step_{step:010d}"

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, ascending."""
        names = [entry.name for entry in self.directory.iterdir()] if self.directory.is_dir() else []
        matches = filter(None, map(_NAME.fullmatch, names))
        return sorted({int(match[1] or match[2]) for match in matches})

    def latest_step(self) -> int | None:
        """The last step that has a checkpoint, or ``None``."""
        return max(self.steps(), default=None)

    def save(self, step: int, tree: PyTree, metadata: dict[str, Any] | None = None) -> Path:
        """Writes the checkpoint of a step, replacing it if it is there, then removes the oldest ones.

        ``step`` is added to the metadata. See :func:`~triax.runs.save_checkpoint` for what can be saved.
        """
        path = self.path(step)
        save_checkpoint(path, tree, {**(metadata or {}), "step": step}, overwrite=True)
        self._tidy()
        if self.keep is not None:
            self._remove(self.steps()[: -self.keep])
        return path

    def load(self, like: PyTree, step: int | None = None, *, part: str | None = None) -> Checkpoint:
        """The checkpoint of a step, ``None`` for the last: see :func:`~triax.runs.load_checkpoint`.

        Its ``metadata["step"]`` is the step.
        """
        return load_checkpoint(self._existing(step), like, part=part)

    def load_arrays(self, step: int | None = None) -> Checkpoint:
        """All arrays by their paths, whatever their shapes: see :func:`~triax.runs.load_arrays`."""
        return load_arrays(self._existing(step))

    def holds(self, step: int, tree: PyTree) -> bool:
        """Whether the checkpoint of a step is there, and of exactly this tree."""
        return step in self.steps() and holds(self.path(step), tree)

    def load_metadata(self, step: int | None = None) -> dict[str, Any]:
        """The metadata alone."""
        return load_metadata(self._existing(step))

    def discard_after(self, step: int) -> None:
        """Removes the checkpoints of later steps: those of a future that a resumed run takes anew."""
        self._tidy()
        self._remove([later for later in self.steps() if later > step])

    def _existing(self, step: int | None) -> Path:
        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            wanted = "a checkpoint" if step is None else f"the checkpoint of step {step}"
            raise FileNotFoundError(f"{self.directory}: expected {wanted}, found those of the steps {steps}.")
        return self.path(steps[-1] if step is None else step)

    def _tidy(self) -> None:
        """Removes what a killed process left unfinished, after putting back what it was about to replace."""
        for leftover in self.directory.glob(".step_*"):
            path = leftover.with_name(leftover.stem.removeprefix("."))
            if leftover.suffix == ".old" and not path.exists():
                os.rename(leftover, path)
            else:
                shutil.rmtree(leftover)

    def _remove(self, steps: list[int]) -> None:
        for step in steps:
            # Renamed first: a checkpoint that bears its name is whole, even when this is interrupted.
            doomed = beside(self.path(step), "removed")
            os.rename(self.path(step), doomed)
            shutil.rmtree(doomed)
