import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import gae_oracle, steps_of
from triax.algorithms import gae


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31 - 1), st.floats(0, 1), st.floats(0.5, 1))
def test_it_is_a_loop_over_episodes_whose_truncated_ends_bootstrap(seed, lambda_, gamma):  # F3
    rng = np.random.default_rng(seed)
    time, batch = 12, 3
    rewards, values, finals = rng.normal(size=(3, time, batch)).astype(np.float32)
    last = rng.normal(size=batch).astype(np.float32)
    done = rng.random((time, batch)) < 0.3
    truncated = done & (rng.random((time, batch)) < 0.5)
    found = gae(rewards, values, last, done, truncated, lambda_, gamma, final_values=finals)
    following = np.where(truncated, finals, np.concatenate([values[1:], last[None]]))
    for i in range(batch):
        columns = (rewards, values, following, done & ~truncated, truncated)
        expected = gae_oracle(steps_of(*(column[:, i] for column in columns)), gamma, lambda_)
        np.testing.assert_allclose(found[:, i], expected, atol=1e-5)


def test_a_truncated_step_reads_its_final_value_and_nothing_else_does():  # F3
    half = np.full((3, 1), 0.5)
    middle = np.array([[False], [True], [False]])
    finals = np.full((3, 1), np.nan)
    finals[1] = 2.0
    found = gae(np.ones((3, 1)), half, half[0], middle, middle, 0.95, 0.99, final_values=finals)
    cut = 1 + 0.99 * 2.0 - 0.5
    np.testing.assert_allclose(found[:, 0], [0.995 + 0.99 * 0.95 * cut, cut, 0.995], rtol=1e-5)


def test_flags_may_be_numbers_and_nothing_is_differentiated():
    zeros = np.zeros((3, 2))
    done = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    gradient = jax.grad(lambda v: gae(zeros, v, zeros[0], done, zeros, 0.9, 0.9).sum())(jnp.ones((3, 2)))
    np.testing.assert_array_equal(gradient, 0.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_final_values_are_asked_for_where_a_step_may_be_truncated(wrap):
    ones = jnp.ones((3, 2))
    with pytest.raises(ValueError, match="final_values=values_of_next_observations"):
        wrap(gae)(ones, ones, ones[0], ones, ones, 0.9, 0.9)
