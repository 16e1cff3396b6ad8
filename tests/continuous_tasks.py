"""Tiny JAX environments with continuous actions, networks with memory for them, and experience to learn from."""

from types import SimpleNamespace

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from triax.envs import State
from triax.networks import LSTM, Concat, Dense, Parallel, Sequential
from triax.reward_tracing import Trajectory, TransitionBatch


class Aim:
    """One step: the reward is best, 0, at the action ``1 + obs``, near which bounds that are not symmetric lie."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(np.array([-1.5], np.float32), np.array([2.5], np.float32))

    def reset(self, rng):
        return State.first(jax.random.uniform(rng, (1,), minval=-1.0, maxval=1.0), {"steps": 0})

    def step(self, state, action):
        reward = -jnp.sum(jnp.square(action - 1 - state.obs))
        return state.next(state.obs, reward, True, {"steps": state.inner["steps"] + 1})


class Echo:
    """The first observation is -1 or 1; after a step without it the action should be that number."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, rng):
        cue = 2.0 * jax.random.bernoulli(rng) - 1
        return State.first(jnp.stack([cue, 0.0]), {"cue": cue, "steps": 0})

    def step(self, state, action):
        steps, cue = state.inner["steps"] + 1, state.inner["cue"]
        over = steps >= 2
        reward = jnp.where(over, -jnp.square(action[0] - cue), 0.0)
        return state.next(jnp.array([0.0, 1.0]), reward, over, {"cue": cue, "steps": steps})


def spaces(action_space, shape=(3,)):
    return SimpleNamespace(observation_space=gymnasium.spaces.Box(-1, 1, shape, np.float32), action_space=action_space)


def transitions(env, size, seed, gamma=0.9):
    rng = np.random.default_rng(seed)
    env.action_space.seed(seed)
    S, S_next = (rng.uniform(-1, 1, (size, *env.observation_space.shape)).astype(np.float32) for _ in range(2))
    A = np.stack([env.action_space.sample() for _ in range(size)])
    In = np.where(rng.random(size) < 0.3, 0, gamma).astype(np.float32)
    Rn, W = rng.normal(size=size).astype(np.float32), rng.uniform(0.5, 1, size).astype(np.float32)
    return TransitionBatch(S, A, np.zeros(size), Rn, In, S_next, W=W)


def trajectory(env, carry, time, batch, seed, burn_in=0):
    """With both ends of episodes somewhere in it."""
    rng = np.random.default_rng(seed)
    S, S_next = (
        jnp.asarray(rng.uniform(-1, 1, (time, batch, *env.observation_space.shape)), jnp.float32) for _ in range(2)
    )
    A = jnp.asarray(rng.uniform(env.action_space.low, env.action_space.high, (time, batch, *env.action_space.shape)))
    ends = rng.random((time, batch))
    return Trajectory(
        S=S,
        A=A.astype(jnp.float32),
        logP=jnp.zeros((time, batch)),
        R=jnp.asarray(rng.normal(size=(time, batch)), jnp.float32),
        terminated=jnp.asarray(ends < 0.15),
        truncated=jnp.asarray(ends > 0.85),
        S_next=S_next,
        carry=carry,
        gamma=0.9,
        burn_in=burn_in,
    )


def recurrent_gaussian(inputs, actions):
    def make(rngs):
        heads = Parallel(mu=Dense(8, actions, rngs), logvar=Dense(8, actions, rngs))
        return Sequential([LSTM(inputs, 8, rngs), heads])

    return make


def recurrent_actor(inputs, actions):
    return lambda rngs: Sequential([LSTM(inputs, 8, rngs), Dense(8, actions, rngs)])


def recurrent_critic(inputs):
    def make(rngs):
        joined = Concat(S=lambda x: x, A=lambda x: x)
        return Sequential(
            [joined, Dense(inputs, 8, rngs), jax.nn.relu, LSTM(8, 8, rngs), Dense(8, 1, rngs), lambda x: x[:, 0]]
        )

    return make


def layers(params):
    """Kernels and biases of a perceptron in order."""
    named = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        *_, layer, kind = [getattr(entry, "key", entry) for entry in path]
        named.setdefault(int(layer), {})[kind] = leaf
    return [(named[i]["kernel"], named[i]["bias"]) for i in sorted(named)]


def perceptron(params, x):
    *hidden, last = layers(params)
    for kernel, bias in hidden:
        x = jnp.maximum(x @ kernel + bias, 0)
    return x @ last[0] + last[1]


def nth(weights, i):
    return jax.tree.map(lambda leaf: leaf[i], weights)
