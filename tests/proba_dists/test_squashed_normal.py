import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from gymnasium import spaces

from triax.proba_dists import NormalDist, SquashedNormalDist

KEY = jax.random.PRNGKey(5)
LOW, HIGH = np.float32([[-2, 1], [0, -5]]), np.float32([[2, 4], [0.1, 100]])
SPACE = spaces.Box(LOW, HIGH)
DIST = SquashedNormalDist(SPACE)
RNG = np.random.default_rng(1)
PARAMS = {"mu": RNG.normal(size=(3, 2, 2)).astype(np.float32), "logvar": RNG.normal(size=(3, 2, 2)).astype(np.float32)}


def oracle_log_density(x, mu, logvar, low, high):
    """Change of variables in float64."""
    centre, half = (np.float64(high) + low) / 2, (np.float64(high) - low) / 2
    u = np.arctanh((x - centre) / half)
    return scipy.stats.norm(mu, np.exp(np.float64(logvar) / 2)).logpdf(u) - np.log(half / np.cosh(u) ** 2)


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (1.0, 4.0), (-0.001, 0.0)])
@pytest.mark.parametrize(("mu", "logvar"), [(0.3, -1.0), (-1.0, 0.5)])
def test_the_density_integrates_to_one(low, high, mu, logvar):
    """F70: range and offset are counted."""
    dist = SquashedNormalDist(spaces.Box(low, high, (1,)))
    # In terms of u the integrand is smooth; the float32 edges hold no mass here.
    u = np.linspace(-7, 7, 20_001)
    x = ((high + low) / 2 + (high - low) / 2 * np.tanh(u)).astype(np.float32)
    params = {"mu": np.float32([[mu]]), "logvar": np.float32([[logvar]])}
    density = np.exp(np.asarray(dist.log_proba(params, x[:, None]), np.float64))
    total = scipy.integrate.trapezoid(density * (high - low) / 2 / np.cosh(u) ** 2, u)
    np.testing.assert_allclose(total, 1, rtol=2e-3)


def test_log_proba_is_the_change_of_variables_summed_over_all_axes():
    """F70."""
    X = DIST.sample(PARAMS, KEY)
    expected = oracle_log_density(np.float64(X), PARAMS["mu"], PARAMS["logvar"], LOW, HIGH).sum((1, 2))
    np.testing.assert_allclose(DIST.log_proba(PARAMS, X), expected, rtol=1e-3)


def test_the_contract_example_of_a_box_from_minus_two_to_two():
    """F70: about -2.7 was expected where the original gave -40.5."""
    dist = SquashedNormalDist(spaces.Box(-2, 2, (1,)))
    params = {"mu": np.float32([[0.0]]), "logvar": np.float32([[0.0]])}
    x = np.float32([[1.9]])
    expected = oracle_log_density(1.9, 0.0, 0.0, -2, 2)
    np.testing.assert_allclose(dist.log_proba(params, x), expected, rtol=1e-4)


def test_samples_follow_the_squashed_distribution():
    n = 8000
    params = {"mu": np.full((n, 1), 0.4, np.float32), "logvar": np.full((n, 1), -0.5, np.float32)}
    X = np.asarray(SquashedNormalDist(spaces.Box(1, 4, (1,))).sample(params, KEY))[:, 0]
    u = np.arctanh((np.float64(X) - 2.5) / 1.5)
    assert scipy.stats.kstest(u, scipy.stats.norm(0.4, np.exp(-0.25)).cdf).pvalue > 1e-3


def test_mean_and_mode_are_the_image_of_mu():
    expected = (LOW + HIGH) / 2 + (HIGH - LOW) / 2 * np.tanh(PARAMS["mu"])
    np.testing.assert_allclose(DIST.mean(PARAMS), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(DIST.mode(PARAMS), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("logvar", [-20.0, -2.0, 3.0, 20.0, 60.0])
@pytest.mark.parametrize("mu", [0.0, 5.0, -50.0])
def test_the_log_probability_of_its_own_samples_is_right_however_large_the_scale(mu, logvar):
    """Pitfall 16: oracle is the same sample in float64, from the same noise."""
    dist = SquashedNormalDist(spaces.Box(-2, 2, (3,)))
    params = {"mu": np.full((4, 3), mu, np.float32), "logvar": np.full((4, 3), logvar, np.float32)}
    X, log_p = dist.sample_with_log_proba(params, KEY)
    normal = NormalDist(spaces.Box(-np.inf, np.inf, (3,)), clip_logvar=(-100, 100))
    noise = np.float64(normal.sample({"mu": 0 * params["mu"], "logvar": 0 * params["mu"]}, KEY))
    sigma = np.exp(np.float64(logvar) / 2)
    u = mu + sigma * noise
    log_cosh = np.abs(u) + np.log1p(np.exp(-2 * np.abs(u))) - np.log(2)
    expected = (scipy.stats.norm.logpdf(noise) - np.log(sigma) - np.log(2) + 2 * log_cosh).sum(1)
    np.testing.assert_allclose(log_p, expected, rtol=1e-4, atol=1e-4)
    assert np.isfinite(dist.log_proba(params, X)).all()
    assert all(row in dist.space for row in np.asarray(X))


def test_at_and_beyond_the_bounds_the_density_is_that_next_to_them():
    """F70: finite, and that of the value 1e-7 half-widths inside."""
    dist = SquashedNormalDist(spaces.Box(1, 4, (1,)))
    params = {"mu": np.float32([[0.2]]), "logvar": np.float32([[1.0]])}
    inside = oracle_log_density(4 - 1.5e-7, 0.2, 1.0, 1, 4), oracle_log_density(1 + 1.5e-7, 0.2, 1.0, 1, 4)
    for x, expected in [(4.0, inside[0]), (5.0, inside[0]), (1.0, inside[1]), (-7.0, inside[1])]:
        if 1 <= x <= 4:
            np.testing.assert_allclose(dist.log_proba(params, np.float32([[x]])), expected, rtol=1e-3)
        assert np.isfinite(dist.log_proba(params, np.float32([[x]]))).all()
        assert np.isfinite(jax.grad(lambda p, x=x: dist.log_proba(p, jnp.array([[x]])).sum())(params)["mu"]).all()


def test_divergence_is_the_same_as_of_the_squashed_variables_and_entropy_that_of_the_normal():
    """F70: labelled as such. The divergence is checked by numeric integration over the box."""
    dist = SquashedNormalDist(spaces.Box(1, 4, (1,)))
    p = {"mu": np.float32([[0.2]]), "logvar": np.float32([[-1.0]])}
    q = {"mu": np.float32([[-0.3]]), "logvar": np.float32([[0.2]])}

    def integrand(x):
        log_p = oracle_log_density(x, 0.2, -1.0, 1, 4)
        return np.exp(log_p) * (log_p - oracle_log_density(x, -0.3, 0.2, 1, 4))

    expected, _ = scipy.integrate.quad(integrand, 1 + 1e-9, 4 - 1e-9, limit=200)
    np.testing.assert_allclose(dist.kl_divergence(p, q), expected, rtol=1e-4)
    np.testing.assert_allclose(dist.entropy(p), scipy.stats.norm(0.2, np.exp(-0.5)).entropy(), rtol=1e-5)


def test_minus_log_probability_of_samples_averages_to_the_entropy_of_the_squashed_variable():
    dist = SquashedNormalDist(spaces.Box(1, 4, (1,)))
    n = 20_000
    params = {"mu": np.full((n, 1), 0.2, np.float32), "logvar": np.full((n, 1), -1.0, np.float32)}
    _, log_p = dist.sample_with_log_proba(params, KEY)

    def integrand(x):
        log_p = oracle_log_density(x, 0.2, -1.0, 1, 4)
        return -np.exp(log_p) * log_p

    expected, _ = scipy.integrate.quad(integrand, 1 + 1e-9, 4 - 1e-9, limit=200)
    log_p = np.asarray(log_p, np.float64)
    assert abs(-log_p.mean() - expected) < 5 * log_p.std() / np.sqrt(n)


def test_logvar_is_clipped_only_on_request():
    params = {"mu": PARAMS["mu"], "logvar": np.full((3, 2, 2), 5.0, np.float32)}
    clipped = {"mu": PARAMS["mu"], "logvar": np.full((3, 2, 2), 2.0, np.float32)}
    dist = SquashedNormalDist(SPACE, clip_logvar=(-5, 2))
    np.testing.assert_allclose(dist.sample(params, KEY), DIST.sample(clipped, KEY), rtol=1e-6)
    np.testing.assert_allclose(dist.entropy(params), DIST.entropy(clipped), rtol=1e-6)
    assert (np.asarray(DIST.entropy(params)) > np.asarray(DIST.entropy(clipped)) + 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_decoded_samples_are_members_and_round_trips_are_exact(dtype):
    space = spaces.Box(-0.1, 0.7, (2,), dtype)
    dist = SquashedNormalDist(space)
    params = {"mu": np.float32([[0.1, 30], [-30, 2]]), "logvar": np.zeros((2, 2), np.float32)}
    X = dist.sample(params, KEY)
    for row in range(2):
        member = dist.postprocess_variate(KEY, X, row)
        assert member in space and member.dtype == dtype
    clean = dist.decode(KEY, X)
    np.testing.assert_array_equal(dist.decode(KEY, dist.preprocess_variate(KEY, clean)), clean)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3),
        spaces.Box(-np.inf, np.inf, (2,)),
        spaces.Box(np.float32([0, 0]), np.float32([1, np.inf])),
        spaces.Box(-3e38, 3e38, (2,)),
        spaces.Box(1, 1, (2,)),
        spaces.Box(0, 255, (2,), np.uint8),
    ],
    ids=str,
)
def test_boxes_that_are_no_intervals_of_floats_are_refused(space):
    """F70."""
    with pytest.raises(TypeError, match="Box"):
        SquashedNormalDist(space)
