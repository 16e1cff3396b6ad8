"""Linear recurrences against plain NumPy loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import LRU, MinGRU, SizeError, linear_recurrence
from triax.networks.linear_recurrence import associative, step_by_step

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, quick_jit, reset_patterns

NETS = {"lru": LRU(3, 4, nnx.Rngs(0), out_features=2), "mingru": MinGRU(3, 4, nnx.Rngs(0))}
PURE = {name: Pure(net) for name, net in NETS.items()}


def loop(decay, inputs, first):
    """The recurrence in NumPy, float64 or complex128."""
    h, out = np.asarray(first, np.complex128), []
    for a, b in zip(np.asarray(decay), np.asarray(inputs), strict=True):
        h = a * h + b
        out.append(h)
    return np.stack(out)


def complex_normals(seed, *shape):
    return (normals(seed, *shape) + 1j * normals(seed + 1, *shape)).astype(jnp.complex64)


@pytest.mark.parametrize("form", [associative, step_by_step])
@pytest.mark.parametrize("time", [1, 2, 13])
def test_both_forms_equal_a_loop_in_both_directions(form, time):
    decay, inputs = 0.7 * complex_normals(0, time, 2, 3), complex_normals(5, time, 2, 3)
    want = loop(decay, inputs, np.zeros((2, 3)))
    np.testing.assert_allclose(form(decay, inputs), want, rtol=1e-4, atol=1e-5)
    want = loop(decay[::-1], inputs[::-1], np.zeros((2, 3)))[::-1]
    np.testing.assert_allclose(form(decay, inputs, reverse=True), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("numbers", [normals, complex_normals])
def test_gradients_equal_automatic_differentiation_of_a_loop(numbers):
    args = 0.7 * numbers(0, 6, 2, 3), numbers(7, 6, 2, 3), numbers(9, 2, 3)

    def stepped(decay, inputs, h):
        states = []
        for t in range(6):
            h = decay[t] * h + inputs[t]
            states.append(h)
        return jnp.stack(states)

    def loss(recurrence):
        return lambda *args: jnp.sum(jnp.sin(recurrence(*args).real) + recurrence(*args).imag ** 2)

    got = quick_jit(jax.grad(loss(linear_recurrence), (0, 1, 2)))(*args)
    want = quick_jit(jax.grad(loss(stepped), (0, 1, 2)))(*args)
    jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-4), got, want)


@given(name=st.sampled_from(list(NETS)), resets=reset_patterns(), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_unroll_equals_stepping_from_any_carry(name, resets, seed):
    pure, xs = PURE[name], normals(seed, TIME, BATCH, 3)
    state = pure.unroll(pure.initialize_state(BATCH), -xs, resets).next_state
    assert_unroll_equals_stepping(pure, xs, resets, state)


def test_lru_equals_its_equations():
    net = NETS["lru"]
    p = {k: np.asarray(v) for k, v in nnx.to_pure_dict(nnx.state(net)).items()}
    decay = np.exp(-np.exp(p["nu_log"]) + 1j * np.exp(p["theta_log"]))
    b, c = p["B"][:, :4] + 1j * p["B"][:, 4:], p["C"][:4] - 1j * p["C"][4:]  # (a + ib)(c - id) = ac + bd + ...
    h, xs = np.zeros((BATCH, 4)), np.asarray(normals(0, TIME, BATCH, 3))
    want = []
    for x in xs:
        h = decay * h + np.exp(p["gamma_log"]) * (x @ b)
        want.append((h @ c).real + x @ p["D"])
    out = net.unroll(net.initialize_state(BATCH), jnp.asarray(xs), jnp.zeros((TIME, BATCH), bool))
    np.testing.assert_allclose(out.output, np.stack(want), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out.next_state, h, rtol=1e-4, atol=1e-5)


def test_lru_starts_in_its_ring_with_normalized_input():
    net = LRU(2, 200, nnx.Rngs(1), r_min=0.9, r_max=0.99, max_phase=0.5)
    decay = np.asarray(net.decay())
    assert np.all((np.abs(decay) >= 0.9 - 1e-6) & (np.abs(decay) <= 0.99 + 1e-6))
    assert np.all((np.angle(decay) >= 0) & (np.angle(decay) <= 0.5))
    gamma = np.exp(np.asarray(net.gamma_log[...]))
    np.testing.assert_allclose(gamma, np.sqrt(1 - np.abs(decay) ** 2), rtol=1e-3)


def test_mingru_mixes_old_state_and_candidate():
    net = NETS["mingru"]
    x, h = normals(0, BATCH, 3), normals(1, BATCH, 4)
    k, candidate = np.split(np.asarray(net.linear(x)), 2, axis=-1)
    z = 1 / (1 + np.exp(-k))
    np.testing.assert_allclose(net(h, x).output, (1 - z) * np.asarray(h) + z * candidate, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", list(NETS))
def test_nothing_of_the_old_episode_is_visible_after_a_reset(name):
    net = NETS[name]
    state = net.initialize_state(1) + 1.0
    resets = jnp.zeros((TIME, 1), bool).at[3].set(True)

    def after(xs, state):
        return jnp.sum(net.unroll(state, xs, resets).output[3:])

    by_inputs, by_carry = quick_jit(jax.grad(after, (0, 1)))(normals(0, TIME, 1, 3), state)
    assert np.all(np.asarray(by_inputs[:3]) == 0) and np.any(np.asarray(by_inputs[3:]) != 0)
    assert np.all(np.asarray(by_carry) == 0)


@pytest.mark.parametrize("name", list(NETS))
def test_refuses_another_width(name):
    with pytest.raises(SizeError, match="takes 3 features on the last axis; got 2"):
        NETS[name](NETS[name].initialize_state(1), jnp.ones((1, 2)))
