import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import BATCH, TIME, windows

from oracles import gae_oracle, lambda_return_oracle, n_step_oracle
from triax.losses import discounted_returns, gae, lambda_returns, n_step_returns, td_errors

FACTORS = st.sampled_from([0.0, 0.5, 0.9, 1.0])
check = functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=2e-5)
many = settings(max_examples=50, deadline=None)

jit_gae, jit_lambda, jit_discounted, jit_td = map(jax.jit, (gae, lambda_returns, discounted_returns, td_errors))
jit_n_step = jax.jit(n_step_returns, static_argnames="n")


@given(window=windows(), discount=FACTORS, lambda_=FACTORS)
@many
def test_gae_is_the_sum_of_discounted_errors_to_the_boundary(window, discount, lambda_):  # pitfalls 1, 3
    check(jit_gae(*window, discount=discount, lambda_=lambda_), window.oracle(gae_oracle, discount, lambda_))


@given(window=windows(), discount=FACTORS, lambda_=FACTORS)
@many
def test_lambda_returns_are_the_mixture_of_n_step_returns(window, discount, lambda_):  # pitfall 5
    r, _, v_next, ended, cut = window
    found = jit_lambda(r, v_next, ended, cut, discount=discount, lambda_=lambda_)
    check(found, window.oracle(lambda_return_oracle, discount, lambda_))


@given(window=windows(), n=st.sampled_from([1, 2, 3, TIME, TIME + 5]), discount=FACTORS)
@many
def test_n_step_returns_stop_at_boundaries(window, n, discount):  # pitfall 19
    r, _, v_next, ended, cut = window
    found = jit_n_step(r, v_next, ended, cut, n=n, discount=discount)
    check(found, window.oracle(n_step_oracle, n, discount))


@given(window=windows(), discount=FACTORS)
@many
def test_discounted_returns_are_the_longest_n_step_returns(window, discount):
    r, _, v_next, ended, cut = window
    found = jit_discounted(r, ended, cut, discount=discount, next_values=v_next)
    check(found, window.oracle(n_step_oracle, TIME, discount))
    without = window._replace(next_values=np.zeros_like(v_next))
    check(jit_discounted(r, ended, cut, discount=discount), without.oracle(n_step_oracle, TIME, discount))


@given(window=windows(), discount=FACTORS, lambda_=FACTORS)
@settings(max_examples=15, deadline=None)
def test_advantage_plus_value_is_the_lambda_return(window, discount, lambda_):
    r, v, v_next, ended, cut = window
    advantages = jit_gae(*window, discount=discount, lambda_=lambda_)
    returns = jit_lambda(r, v_next, ended, cut, discount=discount, lambda_=lambda_)
    np.testing.assert_allclose(advantages + v, returns, rtol=1e-4, atol=1e-4)


def one_episode(terminated, truncated):
    """Three steps, the middle one flagged: its final observation is worth 5, the next episode's first 7."""
    flags = np.zeros((2, 3), bool)
    flags[:, 1] = terminated, truncated
    return np.ones(3), np.array([2.0, 3.0, 7.0]), np.array([3.0, 5.0, 9.0]), *flags


@pytest.mark.parametrize(
    ("terminated", "truncated", "error"),
    [(True, False, 1 - 3), (False, True, 1 + 0.5 * 5 - 3), (True, True, 1 - 3)],
)
def test_the_error_of_a_last_step_never_holds_the_next_episodes_value(terminated, truncated, error):
    r, v, v_next, ended, cut = one_episode(terminated, truncated)
    assert td_errors(r, v, v_next, ended, discount=0.5)[1] == error
    # the recursion stops there too: the last step's error is the whole advantage, and enters the step before
    advantages = gae(r, v, v_next, ended, cut, discount=0.5, lambda_=0.5)
    np.testing.assert_allclose(advantages, [1 + 1.5 - 2 + 0.25 * error, error, 1 + 4.5 - 7])


def test_the_value_after_a_terminated_step_may_be_anything():
    r, v, v_next, ended, cut = one_episode(True, False)
    v_next[1] = np.nan
    assert np.isfinite(gae(r, v, v_next, ended, cut, discount=0.9, lambda_=0.9)).all()
    assert np.isfinite(n_step_returns(r, v_next, ended, cut, n=3, discount=0.9)).all()
    assert np.isfinite(lambda_returns(r, v_next, ended, cut, discount=0.9, lambda_=0.0)).all()


def test_a_window_may_be_cut_anywhere_if_its_end_bootstraps_from_the_rest():
    rng = np.random.default_rng(0)
    r, v_next, flags = rng.normal(size=20), rng.normal(size=20), np.zeros(20, bool)
    whole = discounted_returns(r, flags, flags, discount=0.9, next_values=v_next)
    v_next[9] = whole[10]
    first = discounted_returns(r[:10], flags[:10], flags[:10], discount=0.9, next_values=v_next[:10])
    np.testing.assert_allclose(first, whole[:10], rtol=1e-5)


def test_discount_and_lambda_may_change_from_step_to_step():
    rng = np.random.default_rng(1)
    r, v_next = rng.normal(size=(2, 6)).astype(np.float32)
    flags = np.zeros(6, bool)
    discounts = rng.uniform(size=6).astype(np.float32)
    found = discounted_returns(r, flags, flags, discount=discounts, next_values=v_next)
    expected = v_next[-1]
    for t in reversed(range(6)):
        expected = r[t] + discounts[t] * expected
        np.testing.assert_allclose(found[t], expected, rtol=1e-5)


def test_any_batch_axes_and_integer_or_half_inputs():
    r, flags = jnp.ones((4, 2, 3), jnp.bfloat16), jnp.zeros((4, 2, 3))
    found = discounted_returns(r, flags, flags, discount=1.0)
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, np.broadcast_to([[[4]], [[3]], [[2]], [[1]]], (4, 2, 3)))
    no = np.zeros(2, int)
    np.testing.assert_array_equal(discounted_returns(np.array([1, 1]), no, no, discount=1), [2, 1])


def test_gradients_reach_the_values():
    r, v, v_next, ended, cut = one_episode(False, True)
    gradient = jax.grad(lambda v: gae(r, v, v_next, ended, cut, discount=0.5, lambda_=0.5).sum())(v)
    np.testing.assert_allclose(gradient, [-1, -1.25, -1])


@pytest.mark.parametrize("function", [gae, lambda_returns, n_step_returns, discounted_returns, td_errors])
def test_arrays_of_other_shapes_are_refused(function):
    good, bad = np.zeros((TIME, BATCH)), np.zeros((TIME + 1, BATCH))
    positional = {gae: 5, lambda_returns: 4, n_step_returns: 4, discounted_returns: 3, td_errors: 4}[function]
    keywords = {gae: {"lambda_": 1}, lambda_returns: {"lambda_": 1}, n_step_returns: {"n": 2}}.get(function, {})
    for k in range(positional):
        args = [good] * positional
        args[k] = bad
        with pytest.raises(ValueError, match=r"\[time, \*batch\].*\(8, 3\)"):
            function(*args, discount=0.9, **keywords)
    with pytest.raises(ValueError, match="not empty"):
        function(*[np.zeros((0, 3))] * positional, discount=0.9, **keywords)


@pytest.mark.parametrize("n", [0, -1, True])
def test_n_is_a_positive_int(n):
    with pytest.raises(ValueError, match="positive int"):
        n_step_returns(*[np.zeros(3)] * 4, n=n, discount=0.9)
