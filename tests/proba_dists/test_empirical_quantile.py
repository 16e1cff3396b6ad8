import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from gymnasium import spaces

from triax.proba_dists import EmpiricalQuantileDist, quantiles, quantiles_uniform

KEY = jax.random.PRNGKey(0)
DIST = EmpiricalQuantileDist(4)
PARAMS = {
    "values": np.float32([[1, 2, 3, 3], [-1, 0, 5, 9]]),
    "quantile_fractions": np.float32([[0.125, 0.375, 0.625, 0.875]] * 2),
}


def test_samples_are_values_of_their_row_each_equally_likely():
    """F32."""
    params = {name: jnp.repeat(value[1:], 8000, axis=0) for name, value in PARAMS.items()}
    X = np.asarray(DIST.sample(params, KEY))
    assert X.shape == (8000,)
    values, counts = np.unique(X, return_counts=True)
    np.testing.assert_array_equal(values, [-1, 0, 5, 9])
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_log_proba_is_the_share_of_equal_values():
    """F32."""
    np.testing.assert_allclose(DIST.log_proba(PARAMS, np.float32([3, 5])), np.log([0.5, 0.25]), rtol=1e-6)
    np.testing.assert_array_equal(DIST.log_proba(PARAMS, np.float32([7, 7])), -np.inf)
    X, log_p = DIST.sample_with_log_proba(PARAMS, KEY)
    np.testing.assert_array_equal(log_p, DIST.log_proba(PARAMS, X))
    assert np.isfinite(log_p).all()


@pytest.mark.parametrize(
    "fractions", [quantiles(1, 1000), quantiles_uniform(KEY, 1, 1000)], ids=["midpoints", "uniform"]
)
def test_mean_estimates_the_mean_of_the_distribution_the_quantiles_are_of(fractions):
    """F32: for both kinds of fractions, within five standard errors."""
    distribution = scipy.stats.gamma(2.0)
    values = distribution.ppf(np.asarray(fractions)).astype(np.float32)
    mean = EmpiricalQuantileDist(1000).mean({"values": values, "quantile_fractions": fractions})
    assert mean.shape == (1,)
    assert abs(float(mean[0]) - distribution.mean()) < 5 * distribution.std() / np.sqrt(1000)


def test_affine_transform_moves_the_values():
    scale, shift = np.float32([0.5, 0.0]), np.float32([1, 2])
    transformed = DIST.affine_transform(PARAMS, scale, shift)
    np.testing.assert_allclose(transformed["values"], PARAMS["values"] * scale[:, None] + shift[:, None])
    np.testing.assert_array_equal(transformed["quantile_fractions"], PARAMS["quantile_fractions"])
    curved = DIST.affine_transform(PARAMS, 0.5, 1.0, (jnp.arcsinh, jnp.sinh))
    np.testing.assert_allclose(curved["values"], np.arcsinh(0.5 * np.sinh(PARAMS["values"]) + 1), rtol=1e-5)


def test_a_negative_scale_turns_the_fractions_round():
    """F73's sibling: the quantiles of -2 Z at their fractions, for a normal Z."""
    fractions = np.float32([[0.1, 0.3, 0.6, 0.95]])
    values = scipy.stats.norm.ppf(fractions).astype(np.float32)
    transformed = DIST.affine_transform({"values": values, "quantile_fractions": fractions}, -2.0, 1.0)
    expected = scipy.stats.norm(1, 2).ppf(np.asarray(transformed["quantile_fractions"]))
    np.testing.assert_allclose(transformed["values"], expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["mode", "entropy"])
def test_what_needs_a_density_is_refused(name):
    """F32."""
    with pytest.raises(NotImplementedError, match=f"{name} is not defined"):
        getattr(DIST, name)(PARAMS)


@pytest.mark.parametrize("name", ["cross_entropy", "kl_divergence"])
def test_divergences_are_refused(name):
    """F32."""
    with pytest.raises(NotImplementedError, match=f"{name} is not defined"):
        getattr(DIST, name)(PARAMS, PARAMS)


def test_values_are_decoded_as_they_are():
    X = DIST.sample(PARAMS, KEY)
    member = DIST.postprocess_variate(KEY, X, index=1)
    assert member.shape == () and member == X[1]
    np.testing.assert_array_equal(DIST.preprocess_variate(KEY, 3.5), [3.5])


def test_example_params_have_valid_fractions():
    fractions = np.asarray(DIST.example_params(KEY, 3)["quantile_fractions"])
    np.testing.assert_allclose(fractions, [[0.125, 0.375, 0.625, 0.875]] * 3)
    assert DIST.space == spaces.Box(-np.inf, np.inf, (4,), np.float32) and DIST.num_quantiles == 4


@pytest.mark.parametrize("num_quantiles", [0, 2.5, True, None])
def test_numbers_of_quantiles_that_are_none_are_refused(num_quantiles):
    with pytest.raises(TypeError):
        EmpiricalQuantileDist(num_quantiles)
