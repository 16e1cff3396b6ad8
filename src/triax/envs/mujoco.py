"""Environments of MuJoCo Playground and Brax, which run on the device: ``pip install 'triax[mujoco]'``."""

from typing import Any

from triax.envs.adapt import AdaptedEnv
from triax.envs.extras import import_extra


def make_playground(name: str, *, config: Any = None, episode_length: int | None = None, **kwargs: Any) -> AdaptedEnv:
    """A MuJoCo Playground environment with its time limit; see :func:`triax.envs.make`."""
    who = f"triax.envs.make('playground:{name}')"
    registry = import_extra("mujoco_playground", who, "mujoco").registry
    config = registry.get_default_config(name) if config is None else config
    env = registry.load(name, config=config, **kwargs)
    limit = config.episode_length if episode_length is None else episode_length
    return AdaptedEnv(_limited(env, who, limit, config.action_repeat))


def make_brax(name: str, *, episode_length: int = 1000, action_repeat: int = 1, **kwargs: Any) -> AdaptedEnv:
    """A Brax environment with a time limit; see :func:`triax.envs.make`."""
    who = f"triax.envs.make('brax:{name}')"
    envs = import_extra("brax.envs", who, "mujoco")
    try:
        env = envs.get_environment(name, **kwargs)
    except KeyError as error:
        raise ValueError(f"triax.envs.make: Brax has no environment {name!r}.") from error
    return AdaptedEnv(_limited(env, who, episode_length, action_repeat))


def _limited(env: Any, who: str, episode_length: int, action_repeat: int) -> Any:
    """The time limit that both packages train with: Brax's, which tells it as ``info["truncation"]``."""
    training = import_extra("brax.envs.wrappers.training", who, "mujoco")
    return training.EpisodeWrapper(env, episode_length, action_repeat)
