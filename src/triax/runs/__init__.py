"""What a training run leaves on disk, how far it is, and how it stops."""

from triax.pictures import Curve, RunSeries, describe_spread, summarize
from triax.runs.checkpoint_store import CheckpointStore
from triax.runs.checkpoints import (
    Checkpoint,
    CorruptCheckpointError,
    load_arrays,
    load_checkpoint,
    load_metadata,
    save_checkpoint,
)
from triax.runs.comparison import plot_comparison
from triax.runs.config_file import (
    ConfigError,
    decode_config,
    encode_config,
    installed_versions,
    load_config,
    read_config,
    save_config,
)
from triax.runs.interrupt import CleanInterrupt
from triax.runs.learning_curve import draw_run, plot_learning_curve
from triax.runs.lock import RunInUseError, is_in_use, require_unused
from triax.runs.metrics_file import MetricsLog, MetricsWriter, read_metrics
from triax.runs.progress import Progress
from triax.runs.record import RunRecord, RunRecordError, Session
from triax.runs.report import write_report
from triax.runs.run_directory import Run
from triax.runs.states import Resumable, SavingRhythm, load_last_state, load_state, save_state
from triax.runs.video_file import check_video_path, write_video

__all__ = [
    "Checkpoint",
    "CheckpointStore",
    "CleanInterrupt",
    "ConfigError",
    "CorruptCheckpointError",
    "Curve",
    "MetricsLog",
    "MetricsWriter",
    "Progress",
    "Resumable",
    "Run",
    "RunInUseError",
    "RunRecord",
    "RunRecordError",
    "RunSeries",
    "SavingRhythm",
    "Session",
    "check_video_path",
    "decode_config",
    "describe_spread",
    "draw_run",
    "encode_config",
    "installed_versions",
    "is_in_use",
    "load_arrays",
    "load_checkpoint",
    "load_config",
    "load_last_state",
    "load_metadata",
    "load_state",
    "plot_comparison",
    "plot_learning_curve",
    "read_config",
    "read_metrics",
    "require_unused",
    "save_checkpoint",
    "save_config",
    "save_state",
    "summarize",
    "write_report",
    "write_video",
]
