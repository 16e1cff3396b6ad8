"""Haiku-style functions inside containers."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.networks import Dense, HaikuLayer, Sequential, Stochastic

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals


def torso(x, is_training):
    x = hk.Linear(4, w_init=hk.initializers.RandomNormal())(x)
    if is_training:
        x = hk.dropout(hk.next_rng_key(), 0.5, x)
    return jax.nn.relu(x)


def plain_torso(x):
    scale = hk.get_state("scale", (), init=jnp.ones)
    return hk.Linear(4)(x) * scale


def test_computes_what_haiku_computes():
    layer = HaikuLayer(plain_torso, jnp.zeros(3), nnx.Rngs(0))
    x = normals(0, BATCH, 3)
    p = {name: np.asarray(value[...]) for name, value in layer.params["linear"].items()}
    np.testing.assert_allclose(layer(x), np.asarray(x) @ p["w"] + p["b"], rtol=1e-5, atol=1e-6)
    assert set(nnx.to_pure_dict(nnx.state(layer, nnx.Param))["params"]["linear"]) == {"w", "b"}


def test_stands_in_a_sequence_and_learns():
    net = Sequential([HaikuLayer(plain_torso, jnp.zeros(3), nnx.Rngs(0)), nnx.tanh, Dense(4, 1, nnx.Rngs(1))])
    pure, resets = Pure(net), jnp.zeros((TIME, BATCH), bool)
    assert_unroll_equals_stepping(pure, normals(0, TIME, BATCH, 3), resets)
    graphdef, params, rest = nnx.split(net, nnx.Param, ...)
    gradient = jax.grad(lambda p: nnx.merge(graphdef, p, rest)([(), (), ()], normals(0, 2, 3)).output.sum())(params)
    assert all(np.any(np.asarray(leaf) != 0) for leaf in jax.tree.leaves(gradient))


def test_noise_is_reproduced_by_a_replay_and_off_in_eval_mode():
    net = Sequential([HaikuLayer(torso, jnp.zeros(3), nnx.Rngs(0))])
    assert isinstance(net[0], Stochastic)
    assert_unroll_equals_stepping(Pure(net), normals(0, TIME, BATCH, 3), jnp.zeros((TIME, BATCH), bool))
    x, state = normals(1, BATCH, 3), net.initialize_state(BATCH)
    noisy = net(state, x).output
    net.eval()
    np.testing.assert_array_equal(net(state, x).output, net(net.initialize_state(BATCH), x).output)
    assert not np.array_equal(noisy, net(state, x).output)
    net.train()
    np.testing.assert_array_equal(net(state, x).output, noisy)


def test_its_state_moves_in_training_only():
    def counting(x):
        count = hk.get_state("count", (), init=jnp.zeros)
        hk.set_state("count", count + 1)
        return x + count

    layer = HaikuLayer(counting, jnp.zeros(1), nnx.Rngs(0))
    assert [float(layer(jnp.zeros((1, 1)))[0, 0]) for _ in range(3)] == [0, 1, 2]
    layer.eval()
    assert [float(layer(jnp.zeros((1, 1)))[0, 0]) for _ in range(2)] == [3, 3]
