"""The interface of JAX environments: pure functions of keys and states, one environment at a time."""

from typing import Any, Protocol, runtime_checkable

import gymnasium
import gymnasium.vector
from jaxtyping import PyTree

from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import Key


@runtime_checkable
class EnvState(Protocol):
    """What every state shows. Wrappers also need ``replace(**fields)``; MuJoCo Playground's and Brax's fit.

    ``triax.envs.State`` is the one to write environments with: it holds ``terminated`` and ``truncated``
    apart. Other states tell a time limit by ``info["truncated"]`` or ``info["truncation"]`` beside ``done``;
    without such a key every end is a termination.
    """

    @property
    def obs(self) -> PyTree:
        """The observation: a pytree of arrays."""
        ...

    @property
    def reward(self) -> PyTree:
        """Of the step that led here: a scalar, or a pytree of scalars."""
        ...

    @property
    def done(self) -> Any:
        """Whether the episode is over: a scalar, bool or float."""
        ...

    @property
    def info(self) -> Any:
        """A dict that the environment carries along and shows."""
        ...

    @property
    def metrics(self) -> Any:
        """A dict of what the step measured, to be logged."""
        ...


@runtime_checkable
class RLEnv(Protocol):
    """One environment without batch axes; loops vmap it. Hashable, because compiled functions close over it.

    ``reset`` and ``step`` are pure, run under ``jax.jit``, and return states of one pytree structure.
    """

    def reset(self, rng: Key) -> Any:
        """The first state of an episode that ``rng`` draws."""
        ...

    def step(self, state: Any, action: Any) -> Any:
        """The state after ``action``."""
        ...


def restart(env: Any, rng: Key) -> Any:
    """The first state of an episode: ``env.restart(rng)`` where there is one, else ``env.reset(rng)``.

    They differ where a training's very first episodes are special: see ``triax.wrappers.EpisodeWrapper``.
    """
    return getattr(env, "restart", env.reset)(rng)


def check_env(who: str, env: Any) -> None:
    """``TypeError`` unless ``env`` has ``reset`` and ``step``, is no class and no Gymnasium environment."""
    refuse_unmade_env(who, env)
    if isinstance(env, (gymnasium.Env, gymnasium.vector.VectorEnv)):
        raise TypeError(
            f"{who}: env must be a JAX environment, step(state, action) -> state; got the Gymnasium environment "
            f"{env}. Try an agent in a loop for Gymnasium, for PPO VectorOnPolicy(env, PPOAgent(networks, config)); "
            "or a JAX version of it: triax.envs.make('gymnax:CartPole-v1') with pip install 'triax[gymnax]'."
        )
    missing = [name for name in ("reset", "step") if not callable(getattr(env, name, None))]
    if missing:
        raise TypeError(
            f"{who}: env must be a JAX environment with reset(rng) and step(state, action); "
            f"got {type(env).__name__} without {', '.join(missing)}."
        )
