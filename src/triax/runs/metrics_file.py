"""Metrics of a run: one JSON object per line, TensorBoard events, and W&B; kept whatever ends the run."""

import dataclasses
import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from triax.core.json_files import decode_json, encode_json
from triax.runs.wandb_log import WandbLog
from triax.wrappers.episode_metrics import check_scalars
from triax.wrappers.tensorboard import open_tensorboard, write_scalars

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

_RESERVED = frozenset({"step", "time", "resume"})
_logger = logging.getLogger(__name__)


class MetricsWriter:
    """Appends metrics to a file of JSON lines and, if a folder is given, to TensorBoard, and to ``wandb``.

    Each line is an object of ``step``, ``time`` (seconds since 1970) and the metrics as numbers; NaN and
    infinities are the strings ``"NaN"``, ``"Infinity"``, ``"-Infinity"``. A line is handed to the operating
    system when it is logged, so it outlives a killed process; TensorBoard events do after ten seconds.

    ``resume_step`` says that the run goes on from that step: what was logged after it is superseded, which
    the file records, and TensorBoard hides. A torn last line, which a killed process may leave, is cut off
    with a warning in the log.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        tensorboard_dir: str | os.PathLike | None = None,
        *,
        resume_step: int | None = None,
        wandb: WandbLog | None = None,
    ):
        self.path = Path(path)
        self._wandb = wandb
        self._tensorboard_dir = tensorboard_dir
        self._purge_step = None if resume_step is None else resume_step + 1
        self._tensorboard: SummaryWriter | None = None
        _mend(self.path)
        self._file = open(self.path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        if resume_step is not None:
            self._write({"step": resume_step, "time": time.time(), "resume": True})

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Writes numbers or scalar arrays under the step; waits for those that are still computed.

        Raises ``TypeError`` for what is no scalar, and ``ValueError`` for the names ``step``, ``time`` and
        ``resume``, and once the writer is closed.
        """
        check_scalars("log", metrics)
        taken = sorted(_RESERVED.intersection(metrics))
        if taken:
            raise ValueError(f"log: the metric names {taken} have a meaning of their own. Try other names.")
        if self._file.closed:
            raise ValueError(f"log: {self.path} is closed.")
        fetched = jax.device_get(dict(metrics))
        numbers = {name: float(np.asarray(value)) for name, value in fetched.items()}
        self._write({"step": step, "time": time.time()} | numbers)
        if self._tensorboard is None and self._tensorboard_dir is not None:
            self._tensorboard = open_tensorboard(self._tensorboard_dir, purge_step=self._purge_step)
        if self._tensorboard is not None:
            write_scalars(self._tensorboard, step, numbers)
        if self._wandb is not None:
            self._wandb.log(step, numbers)

    def flush(self) -> None:
        """Hands TensorBoard events to the operating system as well."""
        if self._tensorboard is not None:
            self._tensorboard.flush()

    def close(self) -> None:
        """Closes the files; a second call does nothing."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()
            self._tensorboard = None
        if self._wandb is not None:
            self._wandb.close()
            self._wandb = None

    def _write(self, row: dict[str, Any]) -> None:
        self._file.write(json.dumps(encode_json(row, "metrics"), allow_nan=False) + "\n")

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclasses.dataclass(frozen=True)
class MetricsLog:
    """What a file of metrics says."""

    rows: list[dict[str, Any]]
    """One dict per line: ``step`` (int), ``time`` and the metrics (floats); in the order of logging."""
    torn_lines: int
    """0, or 1 when the last line was cut off and is left out of the rows."""
    superseded_rows: int
    """How many rows are left out because the run was resumed from an earlier step than theirs."""

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps (int64) and values (float64) of the rows that have this metric."""
        rows = [row for row in self.rows if name in row]
        return np.array([row["step"] for row in rows], np.int64), np.array([row[name] for row in rows], float)

    def names(self) -> list[str]:
        """The metrics' names, in the order of their first appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row if name not in _RESERVED))


def read_metrics(path: str | os.PathLike) -> MetricsLog:
    """Reads a file of a ``MetricsWriter``, also while it is written.

    Raises ``ValueError`` naming the line when one that is not the last is broken.
    """
    lines = Path(path).read_bytes().splitlines()
    rows: list[dict[str, Any]] = []
    torn = superseded = 0
    for number, line in enumerate(lines, start=1):
        row = _parse(line)
        if row is None:
            if number < len(lines):
                raise ValueError(f"{path}, line {number}: expected a JSON object with a step, got {line[:80]!r}.")
            torn = 1
        elif row.get("resume"):
            kept = [earlier for earlier in rows if earlier["step"] <= row["step"]]
            superseded += len(rows) - len(kept)
            rows = kept
        else:
            rows.append(row)
    return MetricsLog(rows, torn, superseded)


def _parse(line: bytes) -> dict[str, Any] | None:
    """The object of a line, or ``None`` when the line is torn."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return decode_json(row) if isinstance(row, dict) and "step" in row else None


def _mend(path: Path) -> None:
    """Makes a file that a killed process left end in a whole line."""
    content = path.read_bytes() if path.exists() else b""
    last = content.rpartition(b"\n")[2]
    if not last:
        return
    if _parse(last) is not None:  # only its end of line is missing
        with open(path, "ab") as file:
            file.write(b"\n")
        return
    _logger.warning("%s: the last line is torn and is cut off: %r", path, last[:80])
    os.truncate(path, len(content) - len(last))
