"""Whole trainings in one call, their configs, and their checkpoints."""

from triax.algorithms.checkpointing import (
    CheckpointCallback,
    SavedState,
    load_checkpoint,
    make_checkpoint_fn,
    restore_state,
)

__all__ = [
    "CheckpointCallback",
    "SavedState",
    "load_checkpoint",
    "make_checkpoint_fn",
    "restore_state",
]
