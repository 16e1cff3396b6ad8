"""One training run on disk: its config, metrics, checkpoints, TensorBoard events and learning curve."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from triax.runs.checkpoint_store import CheckpointStore
from triax.runs.config_file import encode_config, load_config, read_config, save_config
from triax.runs.learning_curve import plot_learning_curve
from triax.runs.metrics_file import MetricsLog, MetricsWriter, read_metrics

Config = TypeVar("Config")

_CONFIG, _METRICS, _CURVE = "config.json", "metrics.jsonl", "learning-curve.png"
_TENSORBOARD, _CHECKPOINTS, _BEST = "tensorboard", "checkpoints", "best"


class Run:
    """A folder with all that a training run leaves::

        config.json          the config and the versions of the packages
        metrics.jsonl        one JSON object per line: see MetricsWriter
        tensorboard/         the same for TensorBoard
        checkpoints/         step_0000001000/, ...: see CheckpointStore
        best/                the checkpoint of the best evaluation
        learning-curve.png   the return over steps

    ``Run.create`` begins a run, ``Run.resume`` continues one, ``Run.open`` only reads. Used as a context, it
    closes its files at the end.
    """

    def __init__(self, path: str | os.PathLike, keep_checkpoints: int | None = 3):
        self.path = Path(path)
        self.checkpoints = CheckpointStore(self.path / _CHECKPOINTS, keep_checkpoints)
        self.best = CheckpointStore(self.path / _BEST, keep=1)
        self._writer: MetricsWriter | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike,
        config: Any,
        *,
        overwrite: bool = False,
        keep_checkpoints: int | None = 3,
        tensorboard: bool = True,
    ) -> "Run":
        """Begins a run in a new or empty folder; its parents are made.

        Args:
            path: the folder.
            config: a dataclass: see :func:`~triax.runs.save_config`.
            overwrite: remove the files of an earlier run from the folder, and nothing else.
            keep_checkpoints: how many, ``None`` for all.
            tensorboard: whether to write events for TensorBoard.

        Raises ``FileExistsError`` when the folder is not empty, unless ``overwrite``.
        """
        run = cls(path, keep_checkpoints)
        run._require_room(overwrite)
        encode_config(config)  # so that one that is refused leaves everything as it is
        run.path.mkdir(parents=True, exist_ok=True)
        for name in (_CONFIG, _METRICS, _CURVE, _TENSORBOARD, _CHECKPOINTS, _BEST):
            _remove(run.path / name)
        save_config(run.path / _CONFIG, config)
        run._writer = run._metrics_writer(tensorboard, resume_step=None)
        return run

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike,
        step: int,
        *,
        keep_checkpoints: int | None = 3,
        tensorboard: bool = True,
    ) -> "Run":
        """Continues a run from a step, usually that of its last checkpoint.

        Later checkpoints are removed, and later metrics are left out when they are read. Raises
        ``FileNotFoundError`` when there is no run.
        """
        run = cls.open(path, keep_checkpoints)
        run.checkpoints.discard_after(step)
        run._writer = run._metrics_writer(tensorboard, resume_step=step)
        return run

    @classmethod
    def open(cls, path: str | os.PathLike, keep_checkpoints: int | None = 3) -> "Run":
        """A run to read: its config, metrics and checkpoints. ``FileNotFoundError`` when there is none."""
        run = cls(path, keep_checkpoints)
        if not (run.path / _CONFIG).is_file():
            raise FileNotFoundError(f"Run: {run.path} holds no run: expected a {_CONFIG} there.")
        return run

    def read_config(self) -> Any:
        """The run's config in terms of JSON: see :func:`~triax.runs.read_config`."""
        return read_config(self.path / _CONFIG)

    def load_config(self, config_class: type[Config]) -> Config:
        """The run's config: see :func:`~triax.runs.load_config`."""
        return load_config(self.path / _CONFIG, config_class)

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Writes metrics: see :meth:`MetricsWriter.log`."""
        if self._writer is None:
            raise ValueError(f"Run: {self.path} is open for reading only. Try Run.create or Run.resume.")
        self._writer.log(step, metrics)

    def read_metrics(self) -> MetricsLog:
        """What has been logged so far: see :func:`~triax.runs.read_metrics`."""
        return read_metrics(self.path / _METRICS)

    def write_learning_curve(self, **options: Any) -> Path:
        """Draws ``learning-curve.png`` and returns its path: see :func:`~triax.runs.plot_learning_curve`."""
        plot_learning_curve(self.read_metrics(), self.path / _CURVE, **options)
        return self.path / _CURVE

    def close(self) -> None:
        """Closes the files of the metrics; checkpoints can still be written."""
        if self._writer is not None:
            self._writer.close()

    def _metrics_writer(self, tensorboard: bool, resume_step: int | None) -> MetricsWriter:
        folder = self.path / _TENSORBOARD if tensorboard else None
        return MetricsWriter(self.path / _METRICS, folder, resume_step=resume_step)

    def _require_room(self, overwrite: bool) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(f"Run: {self.path} is a file. Try another name.")
        present = sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []
        if present and not overwrite:
            raise FileExistsError(
                f"Run: {self.path} is not empty: it holds {', '.join(present[:5])}. Try another folder, "
                "overwrite=True, or Run.resume."
            )

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
