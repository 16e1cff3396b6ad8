"""LSTM and GRU: flax's cells are the oracle, by steps and through automatic differentiation of a scan."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import GRU, LSTM, Dense, Parallel, Sequential, SizeError
from triax.networks.gated import LARGE_BATCH
from triax.networks.unrolling import scan_steps

from .laws import (
    BATCH,
    TIME,
    Pure,
    assert_trees_close,
    assert_unroll_equals_stepping,
    normals,
    quick_jit,
    reset_patterns,
)

RANDOM = {
    "bias_init": nnx.initializers.normal(),
    "kernel_init": nnx.initializers.normal(0.5),
    "recurrent_kernel_init": nnx.initializers.normal(0.5),
}


def lstm(**kwargs):
    return LSTM(3, 5, nnx.Rngs(0), **RANDOM, **kwargs)


def gru(**kwargs):
    return GRU(3, 5, nnx.Rngs(0), **RANDOM, **kwargs)


def with_random_start(net):
    for name in ("initial_h", "initial_c"):
        if hasattr(net, name):
            getattr(net, name)[...] = normals(ord(name[-1]), 5)
    return net


NETS = {
    "lstm": lstm(),
    "lstm with other functions": lstm(gate_fn=nnx.hard_sigmoid, activation_fn=nnx.softplus),
    "lstm with a trained start": with_random_start(lstm(use_optimized=False, trainable_initial_state=True)),
    "gru": gru(),
    "gru with a trained start": with_random_start(
        gru(trainable_initial_state=True, gate_fn=nnx.hard_sigmoid, activation_fn=nnx.softplus)
    ),
}
PURE = {name: Pure(net) for name, net in NETS.items()}


@given(name=st.sampled_from(list(NETS)), resets=reset_patterns(), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_unroll_equals_stepping_from_any_carry(name, resets, seed):
    pure, xs = PURE[name], normals(seed, TIME, BATCH, 3)
    state = pure.unroll(pure.initialize_state(BATCH), -xs, resets).next_state
    assert_unroll_equals_stepping(pure, xs, resets, state)


def gradients(unroll):
    """Of a function of outputs and carry, by parameters, inputs and carry."""

    def loss(net, state, xs, resets):
        out = unroll(net, state, xs, resets)
        return jnp.sum(jnp.sin(out.output)) + sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(out.next_state))

    def of(graphdef, params, rest, state, xs, resets):
        def pure(params, state, xs):
            return loss(nnx.merge(graphdef, params, rest), state, xs, resets)

        return jax.grad(pure, (0, 1, 2))(params, state, xs)

    return quick_jit(of, static_argnums=0)


CUSTOM = gradients(lambda net, *args: net.unroll(*args))
AUTOMATIC = gradients(lambda net, state, xs, resets: scan_steps(net, state, xs, resets, None))


@given(name=st.sampled_from(list(NETS)), resets=reset_patterns(), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_backward_pass_equals_automatic_differentiation_of_the_scan(name, resets, seed):
    xs, pure = normals(seed, TIME, BATCH, 3), PURE[name]
    state = pure.unroll(pure.initialize_state(BATCH), -xs, resets).next_state
    split = nnx.split(NETS[name], nnx.Param, ...)
    assert_trees_close(CUSTOM(*split, state, xs, resets), AUTOMATIC(*split, state, xs, resets), atol=1e-4)


@pytest.mark.parametrize("name", ["lstm", "gru with a trained start"])
def test_the_backward_pass_of_a_large_batch_equals_automatic_differentiation(name):
    xs, state = normals(0, 4, LARGE_BATCH, 3), NETS[name].initialize_state(LARGE_BATCH)
    resets = jnp.asarray(np.random.default_rng(0).random((4, LARGE_BATCH)) < 0.3)
    split = nnx.split(NETS[name], nnx.Param, ...)
    assert_trees_close(CUSTOM(*split, state, xs, resets), AUTOMATIC(*split, state, xs, resets), atol=1e-3)


def test_gradients_of_gradients_work():
    net, resets = NETS["lstm"], jnp.zeros((TIME, BATCH), bool)
    state = net.initialize_state(BATCH)

    def penalty(unroll, xs):
        return jnp.sum(jax.grad(lambda xs: jnp.sum(unroll(state, xs, resets).output ** 2))(xs) ** 2)

    xs = normals(3, TIME, BATCH, 3)
    got = quick_jit(jax.grad(lambda xs: penalty(net.unroll, xs)))(xs)
    want = quick_jit(jax.grad(lambda xs: penalty(lambda s, xs, r: scan_steps(net, s, xs, r, None), xs)))(xs)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_a_step_equals_the_cell_of_flax():
    x, h, c = normals(0, BATCH, 3), normals(1, BATCH, 5), normals(2, BATCH, 5)
    net = NETS["lstm"]
    (want_c, want_h), want = net.cell((c, h), x)
    out = net((h, c), x)
    assert_trees_close(tuple(out.next_state), (want_h, want_c))
    np.testing.assert_array_equal(out.output, want)
    np.testing.assert_array_equal(NETS["gru"](h, x).output, NETS["gru"].cell(h, x)[0])


def test_the_carry_is_h_then_c_and_so_are_the_trained_starts():  # F2
    net = NETS["lstm with a trained start"]
    state = net.initialize_state(2)
    np.testing.assert_array_equal(state.h[0], net.initial_h[...])
    np.testing.assert_array_equal(state.c[1], net.initial_c[...])
    out = net(state, normals(0, 2, 3))
    np.testing.assert_array_equal(out.next_state.h, out.output)
    assert state._fields == ("h", "c") == out.next_state._fields


def test_a_trained_start_learns_from_an_episode_that_begins_the_sequence():  # F24
    net, xs = NETS["gru with a trained start"], normals(0, TIME, BATCH, 3)
    graphdef, params = nnx.split(net)
    state = net.initialize_state(BATCH)

    def gradient(resets):
        def loss(params):
            return nnx.merge(graphdef, params).unroll(state, xs, resets).output.sum()

        return jnp.abs(quick_jit(jax.grad(loss))(params)["initial_h"][...]).sum()

    resets = jnp.zeros((TIME, BATCH), bool)
    assert gradient(resets) == 0
    assert gradient(resets.at[0].set(True)) > 0


@pytest.mark.parametrize("name", ["lstm", "gru with a trained start"])
def test_nothing_of_the_old_episode_is_visible_after_a_reset(name):
    net = NETS[name]
    state = jax.tree.map(lambda leaf: leaf + normals(5, *leaf.shape), net.initialize_state(1))
    resets = jnp.zeros((TIME, 1), bool).at[3].set(True)

    def after(xs, state):
        return jnp.sum(net.unroll(state, xs, resets).output[3:])

    by_inputs, by_carry = quick_jit(jax.grad(after, (0, 1)))(normals(0, TIME, 1, 3), state)
    assert np.all(np.asarray(by_inputs[:3]) == 0) and np.any(np.asarray(by_inputs[3:]) != 0)
    assert all(np.all(np.asarray(leaf) == 0) for leaf in jax.tree.leaves(by_carry))


def test_reset_gives_zeros_of_the_shape_of_its_argument():
    net = Parallel(a=lstm(), b=Dense(3, 3, nnx.Rngs(0)))
    state = {"a": (normals(0, 5), normals(1, 5)), "b": ()}
    fresh = net.reset_state(state)
    assert fresh["b"] == () and all(leaf.shape == (5,) and not leaf.any() for leaf in fresh["a"])


def test_takes_integer_inputs_in_both_forms():
    net, xs = NETS["gru"], jnp.asarray(np.random.default_rng(0).integers(0, 5, (TIME, BATCH, 3)), jnp.int32)
    assert_unroll_equals_stepping(PURE["gru"], xs, jnp.zeros((TIME, BATCH), bool))
    assert net(net.initialize_state(BATCH), xs[0]).output.dtype == jnp.float32


def test_refuses_another_width_in_both_forms():
    net = Sequential([Dense(2, 4, nnx.Rngs(0)), nnx.relu, lstm()])
    with pytest.raises(SizeError, match=r"lstm_2 \(LSTM\): takes 3 features on the last axis; relu_1 gives 4"):
        net(net.initialize_state(1), jnp.ones((1, 2)))
    with pytest.raises(SizeError, match=r"lstm_2 \(LSTM\): takes 3 .* relu_1 gives 4"):
        net.unroll(net.initialize_state(1), jnp.ones((2, 1, 2)), jnp.zeros((2, 1), bool))


@pytest.mark.parametrize("cell", [LSTM, GRU])
def test_can_be_pickled_with_the_default_functions(cell):
    net, xs = cell(3, 2, nnx.Rngs(0)), normals(0, TIME, BATCH, 3)
    twin = pickle.loads(pickle.dumps(net))
    resets = jnp.zeros((TIME, BATCH), bool)
    got, want = (n.unroll(n.initialize_state(BATCH), xs, resets).output for n in (twin, net))
    np.testing.assert_array_equal(got, want)
