import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from triax.core.arrays import argmax, argmin, clipped_logit, double_relu, idx, isscalar

KEY = jax.random.PRNGKey(7)


@pytest.mark.parametrize(("function", "oracle"), [(argmax, np.argmax), (argmin, np.argmin)])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_without_ties_is_the_plain_index(function, oracle, axis, dtype):
    arr = np.random.default_rng(0).permutation(60).reshape(3, 4, 5).astype(dtype)
    np.testing.assert_array_equal(function(KEY, arr, axis=axis), oracle(arr, axis=axis))


@pytest.mark.parametrize(("function", "sign"), [(argmax, 1), (argmin, -1)])
def test_every_tied_index_is_equally_likely(function, sign):
    arr = sign * jnp.tile(jnp.array([1.0, 3.0, 3.0, 0.0, 3.0]), (6000, 1))
    counts = np.bincount(function(KEY, arr), minlength=5)
    assert counts[0] == counts[3] == 0
    assert scipy.stats.chisquare(counts[[1, 2, 4]]).pvalue > 1e-4


def test_infinite_values_and_all_equal_ones_are_in_range():
    arr = jnp.full((100, 4), -jnp.inf)
    assert set(np.unique(argmax(KEY, arr))) == {0, 1, 2, 3}
    assert set(np.unique(argmax(KEY, arr.at[:, 2].set(-1e30)))) == {2}


@pytest.mark.parametrize("function", [argmax, argmin])
def test_nan_wins_as_in_numpy(function):
    arr = np.array([[1.0, np.nan, 5.0], [np.nan, 2.0, -3.0]])
    np.testing.assert_array_equal(function(KEY, arr), [1, 0])


def test_typed_and_raw_keys_give_the_same_under_jit():
    arr = jnp.zeros((50, 6))
    raw = jax.jit(argmax)(KEY, arr)
    np.testing.assert_array_equal(raw, argmax(jax.random.wrap_key_data(KEY), arr))


def test_clipped_logit_is_the_logit_inside_and_finite_at_the_edges():
    x = np.array([0.001, 0.25, 0.5, 0.9], np.float32)
    np.testing.assert_allclose(clipped_logit(x), scipy.special.logit(x), rtol=1e-5)
    edges = np.asarray(clipped_logit(jnp.array([0.0, 1.0, -2.0, 3.0])))
    np.testing.assert_allclose(edges[:2], [np.log(1e-15), -np.log(1e-15)], rtol=1e-5)
    assert np.isfinite(edges).all()
    np.testing.assert_allclose(clipped_logit(jnp.array(0.0), epsilon=0.01), np.log(0.01), rtol=1e-5)


def test_double_relu_puts_negative_and_positive_parts_side_by_side():
    x = np.array([[-2.0, 3.0], [0.5, -0.0]], np.float32)
    out = double_relu(x)
    np.testing.assert_array_equal(out, [[-2, 0, 0, 3], [0, 0, 0.5, 0]])
    np.testing.assert_array_equal(out[:, :2] + out[:, 2:], x)


def test_idx_indexes_an_axis():
    arr = np.random.default_rng(0).normal(size=(3, 4))
    best = arr.argmax(axis=1)
    np.testing.assert_array_equal(arr[idx(arr), best], arr.max(axis=1))
    assert idx(arr, axis=1).shape == (4,)


@pytest.mark.parametrize("num", [3, 2.5, True, np.float32(1), np.ones((1, 1)), jnp.ones(())])
def test_numbers_and_arrays_of_one_are_scalars(num):
    assert isscalar(num)


@pytest.mark.parametrize("other", ["a", b"a", None, [1], np.ones(2), jnp.ones((0,)), {}])
def test_anything_else_is_no_scalar(other):
    assert not isscalar(other)
