"""Training a student by distillation, in one call."""

from collections.abc import Callable
from typing import Any

import optax

from triax.agents.distillation import Distillation
from triax.algorithms.checkpointing import CheckpointCallback, SavedState
from triax.algorithms.config import DistillationTrainConfig
from triax.algorithms.results import DistillationTrainResult, TrainingState, VideoData
from triax.algorithms.training import Callbacks, Training, with_overrides
from triax.core.sharding import Devices
from triax.networks import StatefulModule


def train_distillation(  # noqa: PLR0913 (the contract's)
    env: Any,
    teacher: Any,
    student: StatefulModule,
    config: DistillationTrainConfig | None = None,
    *,
    total_steps: int | None = None,
    seed: int | None = None,
    log_fn: Callable[[dict[str, Any], int], Any] | None = None,
    video_fn: Callable[[VideoData], Any] | None = None,
    checkpoint_fn: CheckpointCallback | None = None,
    eval_env: Any = None,
    initial_state: TrainingState | SavedState | None = None,
    optimizer: optax.GradientTransformation | None = None,
    devices: Devices = None,
) -> DistillationTrainResult:
    """Trains a student, in place, to act as a teacher does wherever the student goes.

    Args:
        env: a JAX environment, where the student acts.
        teacher: what gives what the student gives, whatever its architecture; or actions only, such as a function of
            observations. It is copied and never touched; its mode does not matter, it is asked in evaluation mode.
        student: a ``StatefulModule`` that gives a ``PPONetworkOutput`` and ends in action samplers.
        config: all numbers; by default those of ``DistillationTrainConfig()``.
        total_steps: instead of that of the config.
        seed: instead of that of the config.
        log_fn: as for :func:`train_ppo`; metrics of the student's network are called ``student/...``.
        video_fn: ``(VideoData)`` of the student, if ``config.video`` is enabled.
        checkpoint_fn: ``(training_state, steps)``; the teacher's weights are no part of the state.
        eval_env: where to evaluate and film the student; by default ``env``.
        initial_state: as for :func:`train_ppo`; the teacher is the one that is given.
        optimizer: instead of Adam by the config.
        devices: as for :func:`train_ppo`.

    Source: Czarnecki et al. 2019, arXiv:1902.02186.
    """
    config = config or DistillationTrainConfig()
    config = with_overrides("train_distillation", config, DistillationTrainConfig, total_steps, seed)
    agent = Distillation(teacher, student, config.distillation.agent, optimizer=optimizer)
    callbacks = Callbacks(log_fn, video_fn, checkpoint_fn)
    training = Training(
        env, agent, student, config, callbacks, eval_env=eval_env, network_family="student", devices=devices
    )
    return DistillationTrainResult(**training.run(initial_state))
