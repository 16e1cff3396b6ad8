"""Bottlenecks: divergence by numeric integration, noise that replays, jumps that stop at resets."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from triax.networks import AR1VariationalBottleneck, SizeError, VariationalBottleneck

from .laws import BATCH, TIME, Pure, assert_trees_close, assert_unroll_equals_stepping, normals, reset_patterns

KINDS = {"vib": VariationalBottleneck, "ar1": AR1VariationalBottleneck}
NETS = {name: kind(2, nnx.Rngs(0)) for name, kind in KINDS.items()}
PURE = {name: Pure(net) for name, net in NETS.items()}


@given(name=st.sampled_from(list(NETS)), resets=reset_patterns(), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_unroll_equals_stepping_from_any_carry(name, resets, seed):
    pure = PURE[name]
    state = pure.unroll(pure.initialize_state(BATCH), normals(seed + 1, TIME, BATCH, 4), resets).next_state
    assert_unroll_equals_stepping(pure, normals(seed, TIME, BATCH, 4), resets, state)


def test_the_loss_is_the_divergence_from_the_standard_normal():
    net = VariationalBottleneck(1, nnx.Rngs(0), kl_weight=3.0, min_std=0.1)
    mu, r = 0.7, -0.4
    out = net(net.initialize_state(1), jnp.array([[mu, r]]))
    p: Any = stats.norm(mu, np.log1p(np.exp(r)) + 0.1)
    q: Any = stats.norm()
    kl, _ = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -8, 8)
    np.testing.assert_allclose(out.metrics["kl_divergence"], [kl], rtol=1e-4)
    np.testing.assert_allclose(out.regularization_loss, [3 * kl], rtol=1e-4)


def test_samples_have_the_mean_and_the_spread_of_the_code():
    net, n = NETS["vib"], 4000
    out = net(net.initialize_state(n), jnp.tile(jnp.array([1.0, -2.0, 0.5, -1.0]), (n, 1)))
    np.testing.assert_allclose(out.output.mean(0), [1, -2], atol=0.08)
    np.testing.assert_allclose(out.output.std(0), out.metrics["sigma"][0], rtol=0.05)
    assert abs(np.corrcoef(np.asarray(out.output).T)[0, 1]) < 0.08


@pytest.mark.parametrize("name", list(NETS))
def test_noise_depends_on_neither_batch_nor_earlier_draws(name):  # F21, invariant 7
    net, x = NETS[name], normals(0, BATCH, 4)
    state = net.initialize_state(BATCH)
    whole = net(state, x)
    net(net.initialize_state(5), normals(1, 5, 4))
    part = net(jax.tree.map(lambda leaf: leaf[1:], state), x[1:])
    np.testing.assert_array_equal(part.output, whole.output[1:])


def test_keys_move_on_and_survive_resets():
    net = NETS["ar1"]
    state = net.initialize_state(BATCH)
    after = net(state, normals(0, BATCH, 4)).next_state
    data = jax.random.key_data
    assert np.all(np.any(np.asarray(data(after["keys"]) != data(state["keys"])), axis=-1))
    fresh = net.reset_state(after)
    np.testing.assert_array_equal(data(fresh["keys"]), data(after["keys"]))
    assert not fresh["has_last"].any() and not fresh["last_z"].any()


def test_noise_of_a_step_is_not_the_key_of_the_next():  # F19
    net = VariationalBottleneck(2, nnx.Rngs(0))
    state = net.initialize_state(1)
    with jax.debug_key_reuse(True):
        jax.jit(lambda s, x: net(s, x).output)(state, normals(0, 1, 4))


def test_other_seeds_give_other_samples_and_networks_share_none():
    x = normals(0, 1, 4)
    rngs = nnx.Rngs(0)
    nets = [VariationalBottleneck(2, rngs), VariationalBottleneck(2, rngs), VariationalBottleneck(2, nnx.Rngs(1))]
    values = [float(net(net.initialize_state(1), x).output[0, 0]) for net in nets]
    assert len(set(values)) == 3


def test_takes_a_stream_of_its_own_name():  # F20
    a, b = (VariationalBottleneck(2, nnx.Rngs(7, latent=seed)) for seed in (1, 2))
    assert not np.array_equal(a.stream.key.get_value(), b.stream.key.get_value())


@pytest.mark.parametrize("name", list(NETS))
def test_gives_the_mean_in_eval_mode(name):  # F27
    net = KINDS[name](2, nnx.Rngs(0))
    net.eval()
    x = normals(0, BATCH, 4)
    np.testing.assert_array_equal(net(net.initialize_state(BATCH), x).output, x[:, :2])


def test_jumps_cost_their_mean_square_except_at_starts():
    net, resets = NETS["ar1"], jnp.array([[0], [0], [1], [0]], bool)
    out = net.unroll(net.initialize_state(1), normals(0, 4, 1, 4), resets)
    z = np.asarray(out.output)
    want = [0, np.mean((z[1] - z[0]) ** 2), 0, np.mean((z[3] - z[2]) ** 2)]
    np.testing.assert_allclose(out.metrics["l2_diff"][:, 0], want, rtol=1e-5)
    np.testing.assert_allclose(
        out.regularization_loss, out.metrics["kl_divergence"] + out.metrics["l2_diff"], rtol=1e-6
    )


def test_last_code_gets_gradient_only_if_asked_and_never_through_a_reset():
    def gradient(bptt, resets):
        net = AR1VariationalBottleneck(1, nnx.Rngs(0), kl_weight=0.0, backprop_through_time=bptt)
        state = net.initialize_state(1)

        def loss(xs):
            return net.unroll(state, xs, resets).regularization_loss[1].sum()

        return jax.jit(jax.grad(loss))(normals(0, 2, 1, 2))[0]

    resets = jnp.zeros((2, 1), bool)
    assert np.any(gradient(True, resets)) and not np.any(gradient(False, resets))
    cut = gradient(True, resets.at[1].set(True))
    assert np.all(np.isfinite(cut)) and not np.any(cut)


def test_carry_has_no_nan():  # F27: a flag instead of NaN
    state = NETS["ar1"].initialize_state(2)
    assert np.isfinite(np.asarray(state["last_z"])).all() and state["has_last"].dtype == bool
    assert_trees_close(NETS["ar1"].reset_state(state), state)


def test_refuses_another_width():
    with pytest.raises(SizeError, match="takes 4 features on the last axis; got 3"):
        NETS["vib"](NETS["vib"].initialize_state(1), jnp.ones((1, 3)))
