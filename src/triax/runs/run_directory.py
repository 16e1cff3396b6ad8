"""One training run on disk: its config, metrics, checkpoints, TensorBoard events and learning curve."""

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from triax.runs import wandb_log
from triax.runs.checkpoint_store import CheckpointStore
from triax.runs.config_file import encode_config, load_config, read_config, read_versions, save_config
from triax.runs.learning_curve import plot_learning_curve
from triax.runs.lock import FolderLock
from triax.runs.metrics_file import MetricsLog, MetricsWriter, read_metrics
from triax.runs.record import RunRecord, State, read_record, write_record
from triax.runs.wandb_log import WandbLog, require_wandb

Config = TypeVar("Config")

CONFIG, METRICS, RECORD, CURVE = "config.json", "metrics.jsonl", "record.json", "learning-curve.png"
_TENSORBOARD, _CHECKPOINTS, _BEST, _STATES = "tensorboard", "checkpoints", "best", "states"
_SEEDS = "seeds"
VIDEOS, REPORT = ("video.mp4", "video.gif"), "report.html"
_STATES_KEPT = 2


class Run:
    """A folder with all that a training run leaves::

        config.json          the config and the versions of the packages
        record.json          how far it came, and each time that it was trained: see RunRecord
        metrics.jsonl        one JSON object per line: see MetricsWriter
        tensorboard/         the same for TensorBoard
        checkpoints/         step_0000001000/, ...: weights to act with; see CheckpointStore
        best/                those of the best evaluation
        states/              the last two states to resume from: see save_state
        learning-curve.png   the return over steps
        wandb.json           which run of Weights & Biases it is, if it is one
        seeds/               0/, 1/, ...: a run of each seed, if several are trained at once
        video.mp4            episodes of the greedy policy, once they were filmed; or video.gif
        report.html          all of this on one page, once it was asked for

    ``Run.create`` begins a run, ``Run.resume`` continues one, ``Run.open`` only reads. Used as a context, it
    closes its files at the end. Who creates or resumes it holds it until then: ``RunInUseError`` for others.
    """

    def __init__(self, path: str | os.PathLike, keep_checkpoints: int | None = 3):
        self.path = Path(path)
        self.checkpoints = CheckpointStore(self.path / _CHECKPOINTS, keep_checkpoints)
        self.best = CheckpointStore(self.path / _BEST, keep=1)
        self.states = CheckpointStore(self.path / _STATES, _STATES_KEPT)
        self._writer: MetricsWriter | None = None
        self._lock: FolderLock | None = None
        self._began = 0.0

    @classmethod
    def create(
        cls,
        path: str | os.PathLike,
        config: Any,
        *,
        overwrite: bool = False,
        keep_checkpoints: int | None = 3,
        tensorboard: bool = True,
        wandb: bool = False,
    ) -> "Run":
        """Begins a run in a new or empty folder; its parents are made.

        Args:
            path: the folder.
            config: a dataclass: see :func:`~triax.runs.save_config`.
            overwrite: remove the files of an earlier run from the folder, and nothing else.
            keep_checkpoints: how many, ``None`` for all.
            tensorboard: whether to write events for TensorBoard.
            wandb: whether to log to Weights & Biases too; a resumed run does then as well.

        Raises ``FileExistsError`` when the folder is not empty, unless ``overwrite``; ``MissingExtraError`` when
        wandb is not installed.
        """
        if wandb:
            require_wandb("--wandb")
        run = cls(path, keep_checkpoints)
        run._require_room(overwrite)
        encode_config(config)  # so that one that is refused leaves everything as it is
        run.path.mkdir(parents=True, exist_ok=True)
        run._lock = FolderLock(run.path)
        files = (CONFIG, METRICS, RECORD, CURVE, REPORT, *VIDEOS, wandb_log.ID_FILE)
        for name in (*files, _TENSORBOARD, _CHECKPOINTS, _BEST, _STATES, _SEEDS, wandb_log.FOLDER):
            _remove(run.path / name)
        save_config(run.path / CONFIG, config)
        run._writer = run._metrics_writer(tensorboard, resume_step=None, wandb=wandb)
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
        """Continues a run from a step, usually that of its last state.

        Later checkpoints and states are removed, and later metrics are left out when they are read; the best
        weights stay. Raises ``FileNotFoundError`` when there is no run.
        """
        run = cls.open(path, keep_checkpoints)
        run._lock = FolderLock(run.path)
        run.checkpoints.discard_after(step)
        run.states.discard_after(step)
        run._writer = run._metrics_writer(tensorboard, step, (run.path / wandb_log.ID_FILE).is_file())
        return run

    @classmethod
    def open(cls, path: str | os.PathLike, keep_checkpoints: int | None = 3) -> "Run":
        """A run to read: its config, metrics and checkpoints. ``FileNotFoundError`` when there is none."""
        run = cls(path, keep_checkpoints)
        if not (run.path / CONFIG).is_file():
            raise FileNotFoundError(f"Run: {run.path} holds no run: expected a {CONFIG} there.")
        return run

    def read_config(self) -> Any:
        """The run's config in terms of JSON: see :func:`~triax.runs.read_config`."""
        return read_config(self.path / CONFIG)

    def load_config(self, config_class: type[Config]) -> Config:
        """The run's config: see :func:`~triax.runs.load_config`."""
        return load_config(self.path / CONFIG, config_class)

    @property
    def record(self) -> RunRecord:
        """How far it came: see :func:`~triax.runs.RunRecord`."""
        return read_record(self.path / RECORD)

    def seed_paths(self, seeds: Iterable[int]) -> list[Path]:
        """Where the runs of these seeds are, there or not."""
        return [self.path / _SEEDS / str(seed) for seed in seeds]

    def parts(self) -> list[Path]:
        """Where its seeds' runs are, in their order; the run itself if it has none."""
        seeds = self.path / _SEEDS
        found = [entry for entry in seeds.iterdir() if (entry / CONFIG).is_file()] if seeds.is_dir() else []
        return sorted(found, key=lambda entry: int(entry.name)) or [self.path]

    @property
    def video(self) -> Path | None:
        """That of its greedy policy, if it was filmed; the newer one of two."""
        found = [self.path / name for name in VIDEOS if (self.path / name).is_file()]
        return max(found, key=lambda path: path.stat().st_mtime, default=None)

    @property
    def versions(self) -> dict[str, str]:
        """Of triax, Python and the packages that it was trained with last."""
        sessions = self.record.sessions
        return sessions[-1].versions if sessions else read_versions(self.path / CONFIG)

    @property
    def whole(self) -> Path | None:
        """The run of all seeds that this is one of."""
        above = self.path.resolve().parent
        return above.parent if above.name == _SEEDS and (above.parent / CONFIG).is_file() else None

    def begin_session(self, from_step: int, total_steps: int, stop_at: float | None = None) -> None:
        """Records that training goes on from a step; ``record.sessions`` has one for each time."""
        self._require_writer()
        self._began = time.monotonic()
        write_record(self.path / RECORD, self.record.with_session(from_step, total_steps, stop_at))

    def record_progress(self, step: int, state: State = "unfinished") -> None:
        """Records how far it came, and the time since this was last recorded."""
        self._require_writer()
        before, now = self.record, time.monotonic()
        spent, self._began = now - self._began, now
        write_record(self.path / RECORD, replace(before, state=state, step=step, seconds=before.seconds + spent))

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Writes metrics: see :meth:`MetricsWriter.log`."""
        self._require_writer().log(step, metrics)

    def flush(self) -> None:
        """Hands to the operating system what a killed process would lose: see :meth:`MetricsWriter.flush`."""
        self._require_writer().flush()

    @property
    def has_metrics(self) -> bool:
        """Whether anything may have been logged."""
        return (self.path / METRICS).is_file()

    def read_metrics(self) -> MetricsLog:
        """What has been logged so far: see :func:`~triax.runs.read_metrics`."""
        return read_metrics(self.path / METRICS)

    def write_learning_curve(self, **options: Any) -> Path:
        """Draws ``learning-curve.png`` and returns its path: see :func:`~triax.runs.plot_learning_curve`."""
        plot_learning_curve(self.read_metrics(), self.path / CURVE, **options)
        return self.path / CURVE

    def close(self) -> None:
        """Closes the files of the metrics, and lets others have the run."""
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.release()

    def _require_writer(self) -> MetricsWriter:
        if self._writer is None:
            raise ValueError(f"Run: {self.path} is open for reading only. Try Run.create or Run.resume.")
        return self._writer

    def _metrics_writer(self, tensorboard: bool, resume_step: int | None, wandb: bool) -> MetricsWriter:
        folder, whole = self.path / _TENSORBOARD if tensorboard else None, self.whole
        name = self.path.name if whole is None else f"{whole.name}/{self.path.name}"
        log = WandbLog(self.path, self.read_config(), name, (whole or self.path).name) if wandb else None
        return MetricsWriter(self.path / METRICS, folder, resume_step=resume_step, wandb=log)

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
