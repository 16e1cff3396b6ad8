"""What looks at a training from outside and leaves no trace in it: evaluations and videos, with keys of their own."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from triax.agents.ppo_network import Networks, PPONetwork
from triax.algorithms.config import EvalConfig, VideoConfig
from triax.algorithms.episodes import Playing, play, unstack_trajectory
from triax.algorithms.evaluation import Evaluation, as_evaluated, evaluate
from triax.algorithms.results import VideoData
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.envs import resetting


class Evaluator:
    """Evaluates the deterministic policy, in fresh episodes each time unless the config wants fixed ones."""

    def __init__(self, network: PPONetwork, env: Any, config: EvalConfig) -> None:
        percentiles = config.logging_percentiles or ()
        self._config = config
        self._evaluation = Evaluation(network, as_evaluated(env), config.n_envs, config.logging_level, percentiles)

    def __call__(self, networks: Networks, root: Key, iteration: int) -> tuple[dict[str, float], float]:
        """Metrics of the policy after so many iterations, and the steps of all environments per second."""
        start = time.perf_counter()
        number = 0 if self._config.fixed_episodes else iteration
        key = random.fold_in(fold_name(root, "evaluation"), np.uint32(number))
        longest = jnp.asarray(self._config.max_episode_length, jnp.int32)
        metrics, steps = jax.device_get(evaluate(self._evaluation, networks, longest, key))
        speed = self._config.n_envs * int(steps) / (time.perf_counter() - start)
        return {name: float(value) for name, value in metrics.items()}, speed


class Camera:
    """Films the deterministic policy for ``video_fn``.

    Raises ``ValueError`` without one, and ``TypeError`` when the environment has no ``render``.
    """

    def __init__(
        self, network: PPONetwork, env: Any, config: VideoConfig, video_fn: Callable[[VideoData], Any] | None
    ) -> None:
        if video_fn is None:
            raise ValueError("VideoConfig: enabled=True needs a video_fn. Try wandb_video_fn(), or enabled=False.")
        env = resetting(env)
        if not callable(getattr(env, "render", None)):
            raise TypeError(
                f"VideoConfig: a video needs an environment with render(states, **render_kwargs); got {env} without. "
                "Try another eval_env, or VideoConfig(enabled=False)."
            )
        self._render, self._config, self._video_fn = env.render, config, video_fn
        self._playing = Playing(network, env, config.episode_length)

    def __call__(self, networks: Networks, root: Key, iteration: int, step: int) -> float:
        """Show a video of the policy after so many iterations; frames made per second."""
        start = time.perf_counter()
        key = random.fold_in(fold_name(root, "video"), np.uint32(iteration))
        played = play(self._playing, networks, key)
        states = unstack_trajectory(played.states, played.final, self._config.episode_length)
        frames = np.asarray(self._render(states, **self._config.render_kwargs)).astype(np.uint8)
        speed = len(frames) / (time.perf_counter() - start)
        self._video_fn(VideoData(frames, step, float(played.reward), int(played.length)))
        return speed
