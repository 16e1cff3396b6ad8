"""Trajectories of random steps, and networks with memory for them."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete

from triax.networks import LSTM, Dense, Sequential
from triax.reward_tracing import Trajectory

T, B, STATE, ACTIONS, GAMMA = 7, 3, 4, 2, 0.9
ENV = SimpleNamespace(observation_space=Box(-1, 1, (STATE,)), action_space=Discrete(ACTIONS))
RNG = np.random.default_rng(0)


def recurrent_q(rngs):
    return Sequential([LSTM(STATE, 5, rngs), Dense(5, ACTIONS, rngs)])


def twice_recurrent_q(rngs):
    return Sequential([LSTM(STATE, 5, rngs), LSTM(5, ACTIONS, rngs)])


def memoryless_q(rngs):
    return Sequential([Dense(STATE, 5, rngs, jnp.tanh), Dense(5, ACTIONS, rngs)])


def recurrent_v(rngs):
    return Sequential([LSTM(STATE, 5, rngs), lambda x: x.sum(-1)])


def recurrent_policy(rngs):
    return Sequential([LSTM(STATE, 5, rngs), Dense(5, ACTIONS, rngs), lambda x: {"logits": x}])


def make_trajectory(carry=(), **options):
    """Random steps; episodes end in the middle by either flag, and a next state is that of the next step."""
    terminated, truncated = np.zeros((T, B), bool), np.zeros((T, B), bool)
    terminated[3, 0] = truncated[2, 1] = terminated[5, 1] = truncated[4, 2] = True
    S = RNG.uniform(-1, 1, (T + 1, B, STATE)).astype(np.float32)
    final = RNG.uniform(-1, 1, (T, B, STATE)).astype(np.float32)
    done = terminated | truncated
    return Trajectory(
        S=S[:T],
        A=RNG.integers(ACTIONS, size=(T, B)),
        logP=np.full((T, B), -0.7, np.float32),
        R=RNG.normal(size=(T, B)).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        S_next=np.where(done[..., None], final, S[1:]),
        carry=carry,
        gamma=GAMMA,
        **options,
    )
