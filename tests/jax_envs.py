"""Small JAX environments: one with states of triax, the others with states as nnx-ppo's users write them."""

import dataclasses
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from triax.envs import State


class Walk:
    """``obs`` is a point, the action its displacement; it starts anywhere in [0, 1) and ends at 2 or above.

    The ``bonus`` that a start draws is info, and is added to each reward.
    """

    observation_space = gymnasium.spaces.Box(-10, 10, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    observation_size = 1
    action_size = 1

    def reset(self, rng):
        start, bonus = jax.random.uniform(rng, (2,))
        return State.first(start[None], {"steps": 0}, info={"bonus": bonus}, metrics={"moved": 0.0})

    def step(self, state, action):
        obs = state.obs + action
        return state.next(
            obs,
            action[0] + state.info["bonus"],
            obs[0] >= 2,
            {"steps": state.inner["steps"] + 1},
            metrics={"moved": action[0]},
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PlainState:
    """A state that knows ``done`` only, as Brax's and Playground's."""

    data: Any
    obs: Any
    reward: Any
    done: Any
    info: Any
    metrics: Any

    def replace(self, **fields):
        return dataclasses.replace(self, **fields)


class PlainWalk:
    """The same walk with such states, written carelessly: weak types, ``done`` bool here and float there."""

    observation_size = 1
    action_size = 1

    def __init__(self):
        self.drawn = None

    def reset(self, rng):
        start, bonus = jax.random.uniform(rng, (2,))
        return PlainState(0, start[None], 0.0, False, {"bonus": bonus}, {"moved": 0.0})

    def step(self, state, action):
        obs = state.obs + action
        state.info["bonus"] = state.info["bonus"] * 1.0  # writes into the dict it was given, as Brax does
        done = jnp.where(obs[0] >= 2, 1.0, 0.0)
        reward = action[0] + state.info["bonus"]
        return state.replace(data=state.data + 1, obs=obs, reward=reward, done=done, metrics={"moved": action[0]})

    def render(self, trajectory, height=1):
        self.drawn = trajectory
        return np.zeros((len(trajectory), height, 1, 3), np.uint8)


class OnlyTimesOut:
    """Ends by a time limit only, which it tells under ``key``; observations and rewards are pytrees."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, limit=3, key="truncated"):
        self.limit, self.key = limit, key

    def reset(self, rng):
        zero = jnp.zeros(())
        return PlainState(0, self._obs(0), {"a": zero, "b": zero}, 0.0, {self.key: 0.0} if self.key else {}, {})

    def step(self, state, action):
        count = state.data + 1
        out = jnp.where(count >= self.limit, 1.0, 0.0)
        info = {self.key: out} if self.key else {}
        return PlainState(count, self._obs(count), {"a": 1.0, "b": 2.0}, out, info, {})

    def _obs(self, count):
        return {"count": jnp.asarray(count), "flags": (jnp.zeros(2, jnp.bool_), jnp.zeros((2, 2), jnp.uint8))}
