"""Environments of gymnax, which run on the device: ``pip install 'triax[gymnax]'``."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from triax.core import random
from triax.core.keys import Key, make_key
from triax.env_protocol import State
from triax.envs.extras import import_extra


class GymnaxInner(NamedTuple):
    """What is in ``State.inner``: the key of an episode's steps, how many there were, and gymnax' own state.

    A key that is folded with a count, not a chain of keys, costs nothing in environments that draw nothing.
    """

    rng: Key
    steps: Int[Array, ""]
    env: PyTree


class GymnaxEnv:
    """A gymnax environment (1.0 or later) as one of triax, without gymnax' own automatic reset.

    ``State.metrics`` is gymnax' ``info``, such as ``discount``; gymnax' time limit is ``truncated``.

    Args:
        env: as ``gymnax.make`` returns it.
        params: its parameters; ``None``: ``env.default_params``.
    """

    def __init__(self, env: Any, params: Any = None):
        missing = [name for name in ("reset", "step_env", "is_truncated", "default_params") if not hasattr(env, name)]
        if missing:
            raise TypeError(
                f"GymnaxEnv: env must be an environment of gymnax 1.0; got {type(env).__name__} without "
                f"{', '.join(missing)}. Try env, params = gymnax.make('CartPole-v1')."
            )
        self.env = env
        self.params = env.default_params if params is None else params
        self.observation_space = _gymnasium_space(env.observation_space(self.params), self._shapes().obs)
        self.action_space = _gymnasium_space(env.action_space(self.params), None)

    @property
    def observation_size(self) -> Any:
        """The length of a flat observation, or the shape of another."""
        shape = self.observation_space.shape
        return shape[0] if shape is not None and len(shape) == 1 else shape

    @property
    def action_size(self) -> int:
        """The number of discrete actions, or the length of a continuous one."""
        space = self.action_space
        return int(space.n) if isinstance(space, gymnasium.spaces.Discrete) else int(np.prod(space.shape or ()))

    def reset(self, rng: Key) -> State:
        """The first state of an episode; ``rng`` also draws the steps to come."""
        reset_rng, steps_rng = random.split(rng)
        obs, env_state = self.env.reset(reset_rng, self.params)
        action = jax.eval_shape(self.env.action_space(self.params).sample, rng)
        measured = jax.eval_shape(self.env.step_env, rng, env_state, action, self.params)[4]
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), measured)
        return State.first(obs, GymnaxInner(steps_rng, jnp.zeros((), jnp.int32), env_state), metrics=nothing)

    def step(self, state: State, action: Any) -> State:
        """The state after ``action``; an episode that is over goes on, where gymnax lets it."""
        rng, steps, before = state.inner
        step_rng = random.fold_in(rng, steps)
        obs, env_state, reward, terminated, measured = self.env.step_env(step_rng, before, action, self.params)
        return state.next(
            obs,
            reward,
            terminated,
            GymnaxInner(rng, steps + 1, env_state),
            truncated=self.env.is_truncated(env_state, self.params),
            metrics=measured,
        )

    def _shapes(self) -> Any:
        return jax.eval_shape(self.reset, make_key(0))

    def __repr__(self) -> str:
        return f"GymnaxEnv({self.env.name})"


def make(name: str, *, params: Mapping[str, Any] | None = None, **kwargs: Any) -> GymnaxEnv:
    """The gymnax environment of that name; see :func:`triax.envs.make`."""
    gymnax = import_extra("gymnax", f"triax.envs.make('gymnax:{name}')", "gymnax")
    if name not in gymnax.registered_envs:
        near = difflib.get_close_matches(name, gymnax.registered_envs)
        raise ValueError(
            f"triax.envs.make: gymnax has no environment {name!r}. Try one of {near or gymnax.registered_envs}."
        )
    env, defaults = gymnax.make(name, **kwargs)
    return GymnaxEnv(env, _replaced(name, defaults, {} if params is None else dict(params)))


def _replaced(name: str, params: Any, changes: dict[str, Any]) -> Any:
    known = [field.name for field in dataclasses.fields(params)]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise ValueError(f"triax.envs.make: {name} has no parameters {unknown}; it has {known}.")
    return dataclasses.replace(params, **changes)


def _gymnasium_space(space: Any, shapes: Any) -> gymnasium.Space:
    """The Gymnasium space of a gymnax one; ``shapes``, if not ``None``, are those of its real members."""
    kind = type(space).__name__
    if kind not in _SPACES:
        raise TypeError(f"GymnaxEnv: expected a space among {sorted(_SPACES)}; got {kind}.")
    return _SPACES[kind](space, shapes)


def _box(space: Any, shapes: Any) -> gymnasium.Space:
    """Bounds at the largest float mean none; the dtype is the real one, which gymnax' spaces may miss."""
    dtype = np.dtype(space.dtype if shapes is None else shapes.dtype)
    low, high = (np.broadcast_to(np.asarray(bound, np.float64), space.shape) for bound in (space.low, space.high))
    largest = float(np.finfo(np.float32).max)
    low, high = np.where(low <= -largest, -np.inf, low), np.where(high >= largest, np.inf, high)
    return gymnasium.spaces.Box(low.astype(dtype), high.astype(dtype), space.shape, dtype.type)


def _dict(space: Any, shapes: Any) -> gymnasium.Space:
    parts = {name: None if shapes is None else shapes[name] for name in space.spaces}
    return gymnasium.spaces.Dict({name: _gymnasium_space(space.spaces[name], part) for name, part in parts.items()})


def _tuple(space: Any, shapes: Any) -> gymnasium.Space:
    parts = [None] * len(space.spaces) if shapes is None else shapes
    return gymnasium.spaces.Tuple([_gymnasium_space(s, part) for s, part in zip(space.spaces, parts, strict=True)])


_SPACES: dict[str, Callable[[Any, Any], gymnasium.Space]] = {
    "Discrete": lambda space, _: gymnasium.spaces.Discrete(int(space.n)),
    "Box": _box,
    "Dict": _dict,
    "Tuple": _tuple,
}
