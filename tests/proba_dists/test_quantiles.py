import jax
import numpy as np
import pytest
import scipy.stats

from triax.proba_dists import quantile_cos_embedding, quantiles, quantiles_uniform

KEY = jax.random.PRNGKey(0)


@pytest.mark.parametrize("n", [1, 5, 200])
def test_quantiles_are_the_midpoints_of_equal_parts(n):
    """F76."""
    edges = np.linspace(0, 1, n + 1)
    fractions = quantiles(3, n)
    assert fractions.shape == (3, n) and fractions.dtype == np.float32
    np.testing.assert_allclose(fractions, np.tile((edges[1:] + edges[:-1]) / 2, (3, 1)), atol=1e-6)


def test_random_fractions_are_the_order_statistics_of_independent_uniforms():
    """F76: the k-th of N is Beta(k, N + 1 - k), and a ratio of neighbours says nothing of the larger one (Renyi)."""
    fractions = np.asarray(quantiles_uniform(KEY, 3000, 4))
    assert np.all(np.diff(fractions) >= 0) and fractions.min() >= 0 and fractions.max() < 1
    for k, column in enumerate(fractions.T, 1):
        assert scipy.stats.kstest(column, scipy.stats.beta(k, 5 - k).cdf).pvalue > 1e-3
    for k in (1, 2, 3):
        ratio, larger = fractions[:, k - 1] / fractions[:, k], fractions[:, k]
        assert scipy.stats.kstest(ratio, scipy.stats.beta(k, 1).cdf).pvalue > 1e-3
        assert abs(np.corrcoef(ratio, larger)[0, 1]) < 0.08


def test_random_fractions_depend_on_the_key_alone():
    np.testing.assert_array_equal(quantiles_uniform(KEY, 2), quantiles_uniform(jax.random.wrap_key_data(KEY), 2))
    assert not np.array_equal(quantiles_uniform(KEY, 2), quantiles_uniform(jax.random.PRNGKey(1), 2))


def test_embedding_has_the_frequencies_zero_to_n_minus_one():
    """F76: orthogonal on the midpoints, as the cosines of a discrete cosine transform are; the first is constant."""
    features = np.asarray(quantile_cos_embedding(quantiles(1, 64), 16))[0]
    assert features.shape == (64, 16)
    np.testing.assert_allclose(features[:, 0], 1)
    np.testing.assert_allclose(features.T @ features, np.diag([64] + [32] * 15), atol=1e-3)
    assert quantile_cos_embedding(quantiles(2, 8)).shape == (2, 8, 64)
