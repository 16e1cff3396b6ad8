"""TensorBoard event files through tensorboardX, which is imported when the first one is opened."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter


def timestamped(folder: str | os.PathLike) -> Path:
    """The folder's subfolder ``YYYYmmdd_HHMMSS`` of now, or the folder itself if it ends in such a name."""
    folder = Path(folder)
    return folder if re.fullmatch(r"\d{8}_\d{6}", folder.name) else folder / time.strftime("%Y%m%d_%H%M%S")


def open_tensorboard(folder: str | os.PathLike, *, purge_step: int | None = None) -> "SummaryWriter":
    """A writer of a new event file in the folder, on the disk after ten seconds at the latest.

    ``purge_step`` hides what older files hold of that step and later ones: pass it when a run resumes.
    """
    from tensorboardX import SummaryWriter

    # tensorboardX names a file by the second it was opened in, and overwrites: the suffix keeps them apart.
    suffix = f".{os.getpid()}.{time.time_ns()}"
    return SummaryWriter(str(folder), purge_step=purge_step, flush_secs=10, filename_suffix=suffix)


def write_scalars(writer: "SummaryWriter", step: int, scalars: Mapping[str, int | float]) -> None:
    """Writes all numbers as one event of that step; NaN and infinities too (TensorBoard marks them)."""
    from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

    if writer.file_writer is None:
        raise ValueError(f"write_scalars: the TensorBoard writer of {writer.logdir} is closed.")
    values = [Summary.Value(tag=name, simple_value=value) for name, value in scalars.items()]
    writer.file_writer.add_summary(Summary(value=values), step)
