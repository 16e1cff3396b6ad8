"""Functions along sequences agree with a loop that calls them step by step."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import triax
from triax.functions.sequences import unroll, unroll_following
from triax.networks import LSTM, Delay, Dense, Sequential

T, B, STATE, ACTIONS = 6, 3, 4, 2
ENV = SimpleNamespace(observation_space=Box(-1, 1, (STATE,)), action_space=Discrete(ACTIONS))
REALS = SimpleNamespace(observation_space=ENV.observation_space, action_space=Box(-1, 1, (2,)))
RNG = np.random.default_rng(0)
S, S_NEXT = (RNG.uniform(-1, 1, (T, B, STATE)).astype(np.float32) for _ in range(2))
RESETS = np.zeros((T, B), bool)
RESETS[2, 0] = RESETS[0, 1] = RESETS[3, 1] = RESETS[4, 1] = RESETS[5, 2] = True
ONE_HOT = np.eye(ACTIONS, dtype=np.float32)[RNG.integers(ACTIONS, size=(T, B))]
KEY = jax.random.PRNGKey(0)


def recurrent(outputs):
    return lambda rngs: Sequential([Delay(jnp.zeros(STATE), 2), LSTM(STATE, 5, rngs), Dense(5, outputs, rngs)])


def with_action(rngs):
    return Sequential([lambda x: jnp.concatenate([x["S"], x["A"]], -1), LSTM(STATE + 2, 5, rngs), lambda x: x[:, 0]])


def scalar(rngs):
    return Sequential([LSTM(STATE, 5, rngs), Dense(5, 1, rngs), lambda x: x[:, 0]])


def logits(rngs):
    return Sequential([LSTM(STATE, 5, rngs), Dense(5, ACTIONS, rngs), lambda x: {"logits": x}])


def memoryless(rngs):
    return Sequential([Dense(STATE, 8, rngs, jnp.tanh), Dense(8, ACTIONS, rngs)])


def bins(rngs):
    return Sequential([LSTM(STATE, 6, rngs), lambda x: {"logits": x.reshape(-1, ACTIONS, 3)}])


FUNCTIONS = {
    "q": (lambda: triax.Q(recurrent(ACTIONS), ENV, random_seed=0), False),
    "q of the action taken": (lambda: triax.Q(recurrent(ACTIONS), ENV, random_seed=0), True),
    "q of type 1": (lambda: triax.Q(with_action, REALS, random_seed=0), True),
    "memoryless q": (lambda: triax.Q(memoryless, ENV, random_seed=0), False),
    "v": (lambda: triax.V(scalar, ENV, random_seed=0), False),
    "policy": (lambda: triax.Policy(logits, ENV, random_seed=0), False),
    "distributional q": (lambda: triax.StochasticQ(bins, ENV, (-1, 1), 3, random_seed=0), False),
    "epsilon-greedy": (lambda: triax.EpsilonGreedy(triax.Q(recurrent(ACTIONS), ENV, random_seed=0)), False),
    "random": (lambda: triax.RandomPolicy(ENV, 0), False),
}


def single_steps(f, inputs, peek):
    """One environment at a time, one step at a time: outputs at ``inputs`` and, with the same memory, at ``peek``."""
    weights, no_resets = (f._params, f._function_state), jnp.zeros((1, 1), bool)
    step = jax.jit(lambda carry, x: unroll(f, weights, KEY, carry, no_resets, x)[:2])
    outputs, peeks = [], []
    for b in range(B):
        carry = f.initial_carry()
        for t in range(T):
            if RESETS[t, b]:
                carry = f.initial_carry()
            now, carry = step(carry, pick(inputs, t, b))
            outputs.append(now)
            peeks.append(step(carry, pick(peek, t, b))[0])
    return stack(outputs), stack(peeks)


def pick(tree, t, b):
    return jax.tree.map(lambda leaf: leaf[t : t + 1, b : b + 1], tree)


def stack(outputs):
    leaves = jax.tree.map(lambda *parts: np.stack([part[0, 0] for part in parts]), *outputs)
    return jax.tree.map(lambda leaf: np.moveaxis(leaf.reshape(B, T, *leaf.shape[1:]), 0, 1), leaves)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_sequence_equals_single_steps_and_what_followed_is_seen_with_the_memory_of_its_own_episode(name):
    make, takes_action = FUNCTIONS[name]
    f = make()
    extra = (jnp.asarray(ONE_HOT),) if takes_action else ()
    inputs, peek = (S, *extra), (S_NEXT, *extra)
    weights, carry = (f._params, f._function_state), f.initial_carry(B)
    outputs, peeks = single_steps(f, inputs, peek)
    unrolled = jax.jit(lambda *args: unroll(f, *args, inputs).output)(weights, KEY, carry, RESETS)
    following = jax.jit(lambda *args: unroll_following(f, *args, inputs, peek))(weights, KEY, carry, RESETS)
    for found, expected in ((unrolled, outputs), (following, peeks)):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)


def test_a_function_with_memory_that_takes_the_action_has_no_output_for_all_actions():
    def with_memory(rngs):
        return Sequential([lambda x: x["S"], LSTM(STATE, 2, rngs), lambda x: x[:, 0]])

    q = triax.Q(with_memory, REALS, random_seed=0)
    with pytest.raises(ValueError, match="Discrete"):
        q.sequence()
