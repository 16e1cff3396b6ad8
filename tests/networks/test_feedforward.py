"""Dense and Conv against flax's layers and NumPy."""

import pickle

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings

from triax.networks import Conv, Dense, PopulationGraph, SizeError
from triax.networks.unrolling import check_sequence

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, reset_patterns

PURE = Pure(Dense(4, 5, nnx.Rngs(0), nnx.tanh))


@given(resets=reset_patterns())
@settings(max_examples=10, deadline=None)
def test_dense_unroll_equals_stepping(resets):
    assert_unroll_equals_stepping(PURE, normals(0, TIME, BATCH, 4), resets)


def test_dense_is_an_affine_map_and_an_activation():
    dense = Dense(4, 5, nnx.Rngs(0), nnx.relu, bias_init=nnx.initializers.normal())
    x = normals(1, 3, 4)
    linear = nnx.to_pure_dict(nnx.state(dense))["linear"]
    want = np.maximum(np.asarray(x) @ np.asarray(linear["kernel"]) + np.asarray(linear["bias"]), 0)
    np.testing.assert_allclose(dense((), x).output, want, rtol=1e-5, atol=1e-6)


def test_dense_refuses_another_width_with_both_sizes():
    with pytest.raises(SizeError, match="Dense: takes 4 features on the last axis; got 3"):
        Dense(4, 5, nnx.Rngs(0))((), jnp.zeros((2, 3)))


def test_unroll_of_a_layer_without_carry_multiplies_once():  # F41
    dense = Dense(4, 5, nnx.Rngs(0))
    xs, resets = normals(0, TIME, BATCH, 4), jnp.zeros((TIME, BATCH), bool)
    jaxpr = jax.make_jaxpr(lambda xs: dense.unroll((), xs, resets).output)(xs)
    names = [equation.primitive.name for equation in jaxpr.eqns]
    assert names.count("dot_general") == 1
    assert "scan" not in names


@pytest.mark.parametrize("resets", [None, jnp.zeros((TIME, BATCH)), jnp.zeros(TIME, bool)])
def test_unroll_refuses_missing_or_wrong_resets(resets):
    with pytest.raises(TypeError, match=r"resets must be a boolean array \[time, batch\]"):
        check_sequence(Dense(4, 5, nnx.Rngs(0)), (), normals(0, TIME, BATCH, 4), resets)


def test_unroll_refuses_inputs_of_another_length():
    with pytest.raises(ValueError, match=r"must start with \[time, batch\] = \[2, 3\]"):
        Dense(4, 5, nnx.Rngs(0)).unroll((), normals(0, TIME, BATCH, 4), jnp.zeros((2, 3), bool))


def test_conv_sums_over_windows_and_channels():
    conv = Conv(2, 3, 3, nnx.Rngs(0), padding="VALID", bias_init=nnx.initializers.normal())
    x = np.asarray(normals(0, 2, 5, 4, 2))
    p = {name: np.asarray(value) for name, value in nnx.to_pure_dict(nnx.state(conv))["conv"].items()}
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    want = np.einsum("bhwcij,ijco->bhwo", windows, p["kernel"]) + p["bias"]
    np.testing.assert_allclose(conv((), x).output, want, rtol=1e-4, atol=1e-5)


def test_conv_takes_pixels_and_unrolls_with_activation_and_strides():
    conv = Conv(1, 2, (3, 3), nnx.Rngs(0), nnx.relu, strides=2)
    xs = jnp.asarray(np.random.default_rng(0).integers(0, 255, (2, BATCH, 4, 4, 1)), jnp.int32).astype(jnp.uint8)
    assert conv((), xs[0]).output.shape == (BATCH, 2, 2, 2)
    assert_unroll_equals_stepping(Pure(conv), xs, jnp.zeros((2, BATCH), bool))


def test_conv_refuses_another_number_of_channels():
    with pytest.raises(SizeError, match="Conv: takes 1 features on the last axis; got 3"):
        Conv(1, 2, 3, nnx.Rngs(0))((), jnp.zeros((1, 4, 4, 3)))


def test_a_layer_can_be_pickled_if_its_activation_can():
    x = jnp.ones((2, 3))
    layer = Dense(3, 2, nnx.Rngs(0))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(layer))((), x).output, layer((), x).output)
    graph = PopulationGraph(nnx.Rngs(0))
    graph.add_input("a", 3)
    graph.add_output("b", 2)
    graph.connect("a", "b")
    graph.finalize()
    copy, carry = pickle.loads(pickle.dumps(graph)), graph.initialize_state(2)
    np.testing.assert_array_equal(copy(carry, x).output["b"], graph(carry, x).output["b"])
    for activation in (nnx.relu, "relu", lambda y: y):
        with pytest.raises((pickle.PicklingError, AttributeError), match="pickle"):
            pickle.dumps(Dense(3, 2, nnx.Rngs(0), activation))
        layer = Dense(3, 2, nnx.Rngs(0), activation)
        np.testing.assert_array_equal(pickle.loads(cloudpickle.dumps(layer))((), x).output, layer((), x).output)
