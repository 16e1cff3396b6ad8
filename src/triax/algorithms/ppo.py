"""Training with PPO, in one call."""

from collections.abc import Callable
from typing import Any

import optax
from flax import nnx

from triax.agents.ppo import PPOAgent
from triax.algorithms.checkpointing import CheckpointCallback, SavedState
from triax.algorithms.config import TrainConfig
from triax.algorithms.results import TrainingState, TrainResult, VideoData
from triax.algorithms.training import Callbacks, Training, with_overrides
from triax.core.sharding import Devices


def train_ppo(  # noqa: PLR0913 (the contract's)
    env: Any,
    networks: nnx.Module,
    config: TrainConfig | None = None,
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
) -> TrainResult:
    """Trains networks with PPO on a JAX environment, on the device; the networks are trained in place.

    Rollouts and updates are one compiled program, several iterations a call, compiled once for networks of one
    structure, an environment and a config. Between calls, evaluations, videos and checkpoints take place where they
    are due: before the first iteration, and after each one that reaches a multiple of their ``every_steps``.

    Args:
        env: ``reset(key)`` and ``step(state, action)`` of one environment; it is reset automatically.
        networks: a ``StatefulModule`` that gives a ``PPONetworkOutput``, such as ``make_mlp_actor_critic(...)``. Its
            weights and statistics are those so far whenever a callback is called, and at the end, also after an
            exception. Its mode, ``train()`` or ``eval()``, and its random streams stay as they are.
        config: all numbers; by default those of ``TrainConfig()``.
        total_steps: instead of that of the config.
        seed: instead of that of the config.
        log_fn: ``(metrics, steps)``, for every iteration: floats by name, by the config's logging levels.
        video_fn: ``(VideoData)``, if ``config.video`` is enabled.
        checkpoint_fn: ``(training_state, steps)``; see :func:`make_checkpoint_fn`.
        eval_env: where to evaluate and film; by default ``env``.
        initial_state: ``load_checkpoint(...)["training_state"]`` or ``result.training_state``, from which the
            training goes on as if it had not been interrupted; ``total_steps`` counts from the very beginning. Weights
            come from the state, coefficients from the config, and all that is drawn from the seed of then.
        optimizer: instead of Adam by the config.
        devices: over how many local devices, or over which ones, environments are split; by default it is one. The
            numbers are the same up to rounding, and a checkpoint goes on with any number of them.

    Raises ``TypeError`` or ``ValueError`` before anything is trained where arguments do not go together. Source:
    Schulman et al. 2017, arXiv:1707.06347.
    """
    config = with_overrides("train_ppo", config or TrainConfig(), TrainConfig, total_steps, seed)
    agent = PPOAgent(networks, config.ppo.agent, optimizer=optimizer)
    callbacks = Callbacks(log_fn, video_fn, checkpoint_fn)
    training = Training(env, agent, networks, config, callbacks, eval_env=eval_env, devices=devices)
    return TrainResult(**training.run(initial_state))
