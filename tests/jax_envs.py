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


class CartPole:
    """Gymnasium's CartPole-v1 in JAX (Barto, Sutton & Anderson 1983), with its time limit of 500."""

    action_space = gymnasium.spaces.Discrete(2)
    hidden = ()
    """Entries of the state that are not shown."""

    def __init__(self, limit=500):
        self.limit = limit
        shown = 4 - len(self.hidden)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (shown,), np.float32)

    def reset(self, rng):
        state = jax.random.uniform(rng, (4,), minval=-0.05, maxval=0.05)
        return State.first(self._show(state), {"state": state, "steps": 0})

    def step(self, state, action):
        x, x_dot, theta, theta_dot = state.inner["state"]
        force = jnp.where(action == 1, 10.0, -10.0)
        cos, sin = jnp.cos(theta), jnp.sin(theta)
        push = (force + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        x_acc = push - 0.05 * theta_acc * cos / 1.1
        after = jnp.array(
            [x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]
        )
        steps = state.inner["steps"] + 1
        fell = (jnp.abs(after[0]) > 2.4) | (jnp.abs(after[2]) > 12 * 2 * np.pi / 360)
        inner = {"state": after, "steps": steps}
        return state.next(self._show(after), 1.0, fell, inner, truncated=steps >= self.limit)

    def _show(self, state):
        return jnp.delete(state, np.array(self.hidden, int), assume_unique_indices=True)


class MaskedCartPole(CartPole):
    """Positions without velocities: only memory can tell which way the pole falls."""

    hidden = (1, 3)


class Pendulum:
    """Gymnasium's Pendulum-v1 in JAX, with its time limit of 200; it never terminates."""

    observation_space = gymnasium.spaces.Box(np.array([-1, -1, -8], np.float32), np.array([1, 1, 8], np.float32))
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,))

    def __init__(self, limit=200):
        self.limit = limit

    def reset(self, rng):
        theta, theta_dot = jax.random.uniform(rng, (2,), minval=-1.0, maxval=1.0) * jnp.array([np.pi, 1.0])
        return State.first(self._show(theta, theta_dot), {"theta": theta, "theta_dot": theta_dot, "steps": 0})

    def step(self, state, action):
        theta, theta_dot, steps = (state.inner[name] for name in ("theta", "theta_dot", "steps"))
        torque = jnp.clip(action[0], -2.0, 2.0)
        angle = (theta + np.pi) % (2 * np.pi) - np.pi
        cost = angle**2 + 0.1 * theta_dot**2 + 0.001 * torque**2
        theta_dot = jnp.clip(theta_dot + (15.0 * jnp.sin(theta) + 3.0 * torque) * 0.05, -8.0, 8.0)
        theta = theta + theta_dot * 0.05
        inner = {"theta": theta, "theta_dot": theta_dot, "steps": steps + 1}
        return state.next(self._show(theta, theta_dot), -cost, False, inner, truncated=steps + 1 >= self.limit)

    def _show(self, theta, theta_dot):
        return jnp.array([jnp.cos(theta), jnp.sin(theta), theta_dot])
