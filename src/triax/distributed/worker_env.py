"""The environment of a :class:`Worker`."""

from typing import Any

import gymnasium
import numpy as np

from triax.wrappers import TrainMonitor


def monitored(env: Any, name: str | None) -> TrainMonitor:
    """An environment, its id or what makes it, in a ``TrainMonitor``.

    Raises ``TypeError`` if it is none of these, ``ValueError`` without a time limit.
    """
    made = gymnasium.make(env) if isinstance(env, str) else env
    if not isinstance(made, gymnasium.Env) and callable(made):
        made = made()
    if not isinstance(made, gymnasium.Env):
        raise TypeError(f"Worker: env must be a gymnasium.Env, an id, or a callable that makes one; got {env!r}.")
    time_limit(made)
    return made if isinstance(made, TrainMonitor) else TrainMonitor(made, name=name, log_all_metrics=True)


def time_limit(env: gymnasium.Env) -> int:
    """Steps of an episode at most; ``ValueError`` if that is not said."""
    limit = env.spec.max_episode_steps if env.spec is not None else None
    if limit is None:
        raise ValueError(
            "Worker: env.spec.max_episode_steps must be there, since a rollout is one episode. Try"
            " gymnasium.make(id, max_episode_steps=...)."
        )
    return limit


def threshold(env: gymnasium.Env) -> float:
    """The return that solves it; infinite if that is not said."""
    found = env.spec.reward_threshold if env.spec is not None else None
    return np.inf if found is None else found
