"""Whole trainings in one call, their configs, evaluations and checkpoints."""

from triax.agents.logging_level import LoggingLevel
from triax.algorithms.advantages import gae
from triax.algorithms.callbacks import wandb_video_fn
from triax.algorithms.checkpointing import (
    CheckpointCallback,
    SavedState,
    load_checkpoint,
    make_checkpoint_fn,
)
from triax.algorithms.config import (
    DistillationConfig,
    DistillationTrainConfig,
    EvalConfig,
    PPOConfig,
    TrainConfig,
    VideoConfig,
)
from triax.algorithms.distillation import train_distillation
from triax.algorithms.episodes import (
    eval_rollout_for_render_scan,
    record_activations_rollout,
    unstack_trajectory,
)
from triax.algorithms.evaluation import eval_rollout
from triax.algorithms.ppo import train_ppo
from triax.algorithms.results import DistillationTrainResult, TrainingState, TrainResult, VideoData
from triax.env_protocol import EnvState, RLEnv

__all__ = [
    "CheckpointCallback",
    "DistillationConfig",
    "DistillationTrainConfig",
    "DistillationTrainResult",
    "EnvState",
    "EvalConfig",
    "LoggingLevel",
    "PPOConfig",
    "RLEnv",
    "SavedState",
    "TrainConfig",
    "TrainResult",
    "TrainingState",
    "VideoConfig",
    "VideoData",
    "eval_rollout",
    "eval_rollout_for_render_scan",
    "gae",
    "load_checkpoint",
    "make_checkpoint_fn",
    "record_activations_rollout",
    "train_distillation",
    "train_ppo",
    "unstack_trajectory",
    "wandb_video_fn",
]
