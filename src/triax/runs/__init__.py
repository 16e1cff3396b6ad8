"""What a training run leaves on disk, how far it is, and how it stops."""

from triax.runs.checkpoint_store import CheckpointStore
from triax.runs.checkpoints import (
    Checkpoint,
    CorruptCheckpointError,
    load_arrays,
    load_checkpoint,
    load_metadata,
    save_checkpoint,
)
from triax.runs.config_file import ConfigError, decode_config, encode_config, load_config, read_config, save_config
from triax.runs.interrupt import CleanInterrupt
from triax.runs.learning_curve import plot_learning_curve
from triax.runs.metrics_file import MetricsLog, MetricsWriter, read_metrics
from triax.runs.progress import Progress
from triax.runs.run_directory import Run

__all__ = [
    "Checkpoint",
    "CheckpointStore",
    "CleanInterrupt",
    "ConfigError",
    "CorruptCheckpointError",
    "MetricsLog",
    "MetricsWriter",
    "Progress",
    "Run",
    "decode_config",
    "encode_config",
    "load_arrays",
    "load_checkpoint",
    "load_config",
    "load_metadata",
    "plot_learning_curve",
    "read_config",
    "read_metrics",
    "save_checkpoint",
    "save_config",
]
