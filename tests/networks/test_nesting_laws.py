"""Laws of random networks: nothing crosses a reset, environments are apart, a replay reproduces the rollout."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import Sequential

from .laws import assert_trees_close, normals, quick_jit, reset_patterns
from .nestings import LAYERS, nestings


class Sequences:
    """``unroll`` and ``initialize_state`` of a network, as pure functions compiled on demand."""

    def __init__(self, net: Any):
        graphdef, variables = nnx.split(net)

        def merge() -> Any:
            return nnx.merge(graphdef, variables, copy=True)

        self.start = partial(quick_jit(lambda n: merge().initialize_state(n), static_argnums=0))
        self.unroll = lambda *args: merge().unroll(*args)


def check_reset(net, cut, time, batch, n, seed):
    """No derivative of what comes at ``cut`` or later by an input or a carry before it, but for those of its own."""
    sequences, xs = Sequences(net), normals(seed, time, batch, n)
    resets = jnp.zeros((time, batch), bool).at[cut].set(True)
    state = sequences.start(batch)
    leaves, treedef = jax.tree.flatten(state)
    places = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    def after(xs, floats):
        carry = list(leaves)
        for i, leaf in zip(places, floats, strict=True):
            carry[i] = leaf
        out = sequences.unroll(treedef.unflatten(carry), xs, resets)
        return jnp.sum(out.output[cut:] ** 2) + jnp.sum(out.regularization_loss[cut:])

    floats = [leaves[i] + 0.1 for i in places]
    by_inputs, by_carry = quick_jit(jax.grad(after, (0, 1)))(xs, floats)
    np.testing.assert_array_equal(by_inputs[:cut], 0)
    for leaf in by_carry:
        np.testing.assert_array_equal(leaf, 0)
    return by_inputs[cut:]


def check_rollout(net, resets, n, seed):
    """The replay is the rollout, and that of one environment alone is its part of it."""
    sequences, (time, batch) = Sequences(net), resets.shape
    xs, state, one = normals(seed, time, batch, n), sequences.start(batch), batch - 1

    @quick_jit
    def run(state, xs, resets):
        rollout = sequences.unroll(state, xs, resets)
        replay = sequences.unroll(state, xs, resets, rollout.rollout_extras)
        carry = jax.tree.map(lambda leaf: leaf[one:], state)
        x, reset, extras = jax.tree.map(lambda leaf: leaf[:, one:], (xs, resets, rollout.rollout_extras))
        return rollout, replay, sequences.unroll(carry, x, reset, extras)

    rollout, replay, alone = run(state, xs, resets)
    for field in ("output", "next_state"):
        assert_trees_close(getattr(replay, field), getattr(rollout, field))
    assert_trees_close(alone.output, jax.tree.map(lambda leaf: leaf[:, one:], replay.output))
    assert_trees_close(alone.next_state, jax.tree.map(lambda leaf: leaf[one:], replay.next_state))


@given(net=nestings(2, 2), cut=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=4, deadline=None)
def test_no_gradient_crosses_a_reset_in_a_random_nesting(net, cut, seed):
    check_reset(Sequential([net]), cut, 4, 2, 2, seed)


@given(net=nestings(2, 2), resets=reset_patterns(4, 2), seed=st.integers(0, 99))
@settings(max_examples=4, deadline=None)
def test_a_replay_of_a_random_nesting_is_its_rollout_and_environments_are_apart(net, resets, seed):  # F21, F38
    check_rollout(Sequential([net]), resets, 2, seed)


@pytest.mark.slow
@given(data=st.data(), n=st.integers(1, 4), time=st.integers(2, 8), batch=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_no_gradient_crosses_a_reset_in_nestings_of_any_size(data, n, time, batch, seed):
    check_reset(Sequential([data.draw(nestings(n, 3))]), data.draw(st.integers(1, time - 1)), time, batch, n, seed)


@pytest.mark.slow
@given(data=st.data(), n=st.integers(1, 4), time=st.integers(1, 8), batch=st.integers(1, 4), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_replays_of_nestings_of_any_size_are_their_rollouts(data, n, time, batch, seed):
    check_rollout(Sequential([data.draw(nestings(n, 3))]), data.draw(reset_patterns(time, batch)), n, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LAYERS))
def test_every_layer_obeys_the_laws_alone(name):
    net = Sequential([LAYERS[name](2)])
    later = check_reset(net, 2, 5, 2, 2, 0)
    assert name == "sampler" or np.any(later != 0)  # its action is a constant
    check_rollout(net, jnp.zeros((5, 2), bool).at[2, 1].set(True), 2, 0)
