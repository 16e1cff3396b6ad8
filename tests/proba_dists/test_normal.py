import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from gymnasium import spaces

from triax.proba_dists import NormalDist
from triax.spaces import decoder

KEY = jax.random.PRNGKey(2)
REALS = spaces.Box(-np.inf, np.inf, (2, 3))
DIST = NormalDist(REALS)
RNG = np.random.default_rng(0)
P = {name: RNG.normal(size=(4, 2, 3)).astype(np.float32) for name in ("mu", "logvar")}
Q = {name: RNG.normal(size=(4, 2, 3)).astype(np.float32) for name in ("mu", "logvar")}
ODD = spaces.Box(
    np.array([-1, 0, -np.inf, -np.inf, 5, -3.4e38, 2], np.float32),
    np.array([1, np.inf, 7, np.inf, 1000, 3.4e38, 2], np.float32),
)
"""Two bounds, one, the other, none, wide, the largest floats, equal ones."""


def sigma(params):
    return np.exp(params["logvar"].astype(float) / 2)


# ------------------------------------------------------------------ the real variable


def test_log_proba_and_entropy_match_scipy_summed_over_all_axes():
    X = RNG.normal(size=(4, 2, 3)).astype(np.float32)
    oracle = scipy.stats.norm(P["mu"], sigma(P))
    np.testing.assert_allclose(DIST.log_proba(P, X), oracle.logpdf(X).sum((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(DIST.entropy(P), oracle.entropy().sum((1, 2)), rtol=1e-5)


def test_cross_entropy_and_kl_match_numeric_integration():
    dist = NormalDist(spaces.Box(-np.inf, np.inf, ()))
    x = np.linspace(-30, 30, 200_001)
    p, q = ({name: value[:, 0, 0] for name, value in params.items()} for params in (P, Q))
    density, log_density = (scipy.stats.norm(r["mu"][:, None], sigma(r)[:, None]) for r in (p, q))
    cross = -scipy.integrate.trapezoid(density.pdf(x) * log_density.logpdf(x), x, axis=1)
    kl = scipy.integrate.trapezoid(density.pdf(x) * (density.logpdf(x) - log_density.logpdf(x)), x, axis=1)
    np.testing.assert_allclose(dist.cross_entropy(p, q), cross, rtol=1e-4)
    np.testing.assert_allclose(dist.kl_divergence(p, q), kl, rtol=1e-4)


def test_the_divergence_of_nearly_equal_distributions_is_not_rounding():
    near = {"mu": P["mu"] + np.float32(1e-3), "logvar": P["logvar"]}
    exact = 0.5 * ((near["mu"].astype(float) - P["mu"]) ** 2 / sigma(P) ** 2).sum((1, 2))
    np.testing.assert_allclose(DIST.kl_divergence(P, near), exact, rtol=1e-3)


def test_samples_have_mean_and_variance():
    """Pitfall 18: logvar is the logarithm of the variance. Five standard errors."""
    n = 20_000
    params = {"mu": np.full((n, 1), 2.0, np.float32), "logvar": np.full((n, 1), np.log(0.25), np.float32)}
    X = np.asarray(NormalDist(spaces.Box(-np.inf, np.inf, (1,))).sample(params, KEY))
    assert abs(X.mean() - 2) < 5 * 0.5 / np.sqrt(n)
    assert abs(X.var() - 0.25) < 5 * 0.25 * np.sqrt(2 / n)
    assert scipy.stats.kstest(X[:, 0], scipy.stats.norm(2, 0.5).cdf).pvalue > 1e-3


def test_a_sample_comes_with_its_own_density_and_the_gradient_of_it():
    X, log_p = DIST.sample_with_log_proba(P, KEY)
    np.testing.assert_allclose(log_p, scipy.stats.norm(P["mu"], sigma(P)).logpdf(X).sum((1, 2)), rtol=1e-5)
    # X - mu = sigma * noise does not depend on mu, and -logvar / 2 is all that is left of the density.
    gradient = jax.grad(lambda params: DIST.sample_with_log_proba(params, KEY)[1].sum())(P)
    np.testing.assert_allclose(gradient["mu"], 0, atol=1e-5)
    np.testing.assert_allclose(gradient["logvar"], -0.5, rtol=1e-4)


def test_mean_and_mode_are_mu():
    np.testing.assert_array_equal(DIST.mean(P), P["mu"])
    np.testing.assert_array_equal(DIST.mode(P), P["mu"])


def test_logvar_is_clipped_everywhere():
    dist = NormalDist(REALS, clip_logvar=(-1, 0.5))
    extreme = {"mu": P["mu"], "logvar": 50 * P["logvar"]}
    clipped = {"mu": P["mu"], "logvar": np.clip(50 * P["logvar"], -1, 0.5)}
    X = dist.sample(extreme, KEY)
    np.testing.assert_allclose(X, DIST.sample(clipped, KEY), rtol=1e-5)
    np.testing.assert_allclose(dist.log_proba(extreme, X), DIST.log_proba(clipped, X), rtol=1e-5)
    np.testing.assert_allclose(dist.entropy(extreme), DIST.entropy(clipped), rtol=1e-5)
    np.testing.assert_allclose(
        dist.cross_entropy(extreme, Q),
        DIST.cross_entropy(clipped, {"mu": Q["mu"], "logvar": np.clip(Q["logvar"], -1, 0.5)}),
        rtol=1e-5,
    )
    assert np.isfinite(NormalDist(REALS).log_proba({"mu": P["mu"], "logvar": P["logvar"] * 1e4}, X)).all()


# ------------------------------------------------------------------ affine_transform


@pytest.mark.parametrize(("scale", "shift"), [(2.0, 3.0), (-0.5, 1.0), (np.array([1.0, -2, 3, 0.5]), np.arange(4.0))])
def test_affine_transform_scales_mean_and_standard_deviation(scale, shift):
    """F71."""
    transformed = DIST.affine_transform(P, scale, shift)
    column = np.reshape(scale, (-1, 1, 1))
    np.testing.assert_allclose(transformed["mu"], P["mu"] * column + np.reshape(shift, (-1, 1, 1)), rtol=1e-5)
    np.testing.assert_allclose(np.exp(transformed["logvar"] / 2), sigma(P) * np.abs(column), rtol=1e-5)


def test_affine_transform_by_zero_is_nearly_a_point():
    transformed = DIST.affine_transform(P, 0.0, 1.5)
    np.testing.assert_allclose(transformed["mu"], 1.5)
    np.testing.assert_array_equal(transformed["logvar"], -20)


def test_affine_transform_with_a_value_transform_fits_a_narrow_distribution():
    """F71: the transform is applied to the variable, not to its variance. Oracle: transformed samples."""
    pair = (jnp.arcsinh, jnp.sinh)
    n, narrow = 40_000, {"mu": np.float32([[0.7]]), "logvar": np.float32([[2 * np.log(0.01)]])}
    dist = NormalDist(spaces.Box(-np.inf, np.inf, (1,)))
    transformed = dist.affine_transform(narrow, 0.9, 0.3, pair)
    x = scipy.stats.norm(0.7, 0.01).rvs(n, random_state=0)
    y = np.arcsinh(0.9 * np.sinh(x) + 0.3)
    np.testing.assert_allclose(transformed["mu"][0, 0], y.mean(), atol=1e-4)
    np.testing.assert_allclose(np.exp(transformed["logvar"][0, 0] / 2), y.std(), rtol=0.02)


def test_affine_transform_takes_any_object_that_iterates_as_a_pair_and_compiles_once():
    class Transform:
        def __iter__(self):
            return iter((jnp.arcsinh, jnp.sinh))

    transform = Transform()
    dist = NormalDist(REALS)
    first = dist.affine_transform(P, 2.0, 1.0, transform)
    again = dist.affine_transform(P, 3.0, 1.0, (jnp.arcsinh, jnp.sinh))
    again = dist.affine_transform(P, 2.0, 1.0, [jnp.arcsinh, jnp.sinh])
    np.testing.assert_array_equal(first["mu"], again["mu"])
    assert dist._jitted_affine_transform._cache_size() <= 3
    dist.affine_transform(P, 5.0, 1.0, transform)
    assert dist._jitted_affine_transform._cache_size() <= 3


# ------------------------------------------------------------------ reals and the box


@pytest.mark.parametrize("low", [-1.0, 0.0, 100.0, -1e-3, -1e6])
@pytest.mark.parametrize("width", [2.0, 1e-3, 1e6])
def test_box_values_survive_the_round_trip_edges_included(low, width):
    """F28."""
    space = spaces.Box(low, low + width, (9,), np.float64)
    dist = NormalDist(space)
    x = low + width * np.array([0, 1e-6, 0.01, 0.3, 0.5, 0.9, 0.9999, 1 - 1e-6, 1])
    back = np.asarray(dist.decode(KEY, dist.preprocess_variate(KEY, x)))[0]
    # float32 itself resolves |x| to one part in 1.7e7
    np.testing.assert_allclose(back, x, rtol=0, atol=4e-7 * (width + abs(low)))


def test_reals_survive_the_round_trip_where_the_sigmoid_is_not_saturated():
    dist = NormalDist(spaces.Box(-1, 1, (50,)))
    u = np.linspace(-7, 7, 50, dtype=np.float32)[None]
    np.testing.assert_allclose(dist.preprocess_variate(KEY, dist.decode(KEY, u)), u, atol=2e-3)


@pytest.mark.parametrize("size", [0.0, 1.0, 10.0, 20.0, 1e3, 1e6])
def test_log_proba_of_what_was_decoded_is_finite_however_far_out(size):
    """F28, pitfall 16."""
    dist = NormalDist(ODD)
    params = {"mu": np.full((2, 7), size, np.float32), "logvar": np.full((2, 7), 2.0, np.float32)}
    params["mu"][1] *= -1
    clean = dist.decode(KEY, dist.sample(params, KEY))
    log_p = dist.log_proba(params, dist.preprocess_variate(KEY, clean))
    assert np.isfinite(log_p).all() and np.isfinite(clean).all()
    for row in np.asarray(clean):
        assert decoder(ODD)(row) in ODD


def test_each_component_is_mapped_by_its_own_bounds():
    """F25, pitfalls 13 and 15: oracle is the documented map, in NumPy."""
    u = np.float32([[-3, -3, -3, -300, 0, 400, 5], [2, 2, 2, 1e6, 1, -1e5, 0], [40, 500, -500, 0, 40, 0, 40]])
    x = np.asarray(NormalDist(ODD).decode(KEY, u))
    logistic = scipy.special.expit(u.astype(float))
    expected = np.stack(
        [
            -1 + 2 * logistic[:, 0],
            np.logaddexp(0, u[:, 1].astype(float)),
            7 - np.logaddexp(0, -u[:, 2].astype(float)),
            u[:, 3],
            5 + 995 * logistic[:, 4],
            u[:, 5],
            np.full(3, 2.0),
        ],
        axis=1,
    )
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_the_map_is_increasing_and_its_inverse_undoes_it_in_each_component():
    dist = NormalDist(ODD)
    u = np.repeat(np.linspace(-12, 12, 200, dtype=np.float32)[:, None], 7, axis=1)
    x = np.asarray(dist.decode(KEY, u))
    assert (np.diff(x[:, :6], axis=0) >= 0).all() and (np.diff(x[::20, :6], axis=0) > 0).all()
    again = np.asarray(dist.decode(KEY, dist.preprocess_variate(KEY, x)))
    np.testing.assert_allclose(again, x, rtol=1e-5, atol=1e-5)


def test_unbounded_components_are_not_cut():
    """F25."""
    space = spaces.Box(-np.inf, np.inf, (1,))
    np.testing.assert_allclose(NormalDist(space).decode(KEY, np.float32([[12345.0]])), 12345.0)
    np.testing.assert_allclose(NormalDist(space).preprocess_variate(KEY, np.float32([-1e8])), -1e8)
    wide = NormalDist(spaces.Box(-1000, 1000, (1,)))
    np.testing.assert_allclose(wide.decode(KEY, np.float32([[30.0], [-30.0]])), [[1000], [-1000]], rtol=1e-5)
    NormalDist(spaces.Box(300, 400, (1,)))


def test_an_explicit_clip_box_bounds_every_component():
    dist = NormalDist(spaces.Box(np.float32([-1, -np.inf]), np.float32([100, np.inf])), clip_box=(-10, 10))
    extremes = dist.decode(KEY, np.float32([[30, 30], [-30, -30]]))
    np.testing.assert_allclose(extremes, [[10, 10], [-1, -10]], rtol=1e-5)
    with pytest.raises(ValueError, match=r"clip_box=\(-10.0, 10.0\) leaves nothing"):
        NormalDist(spaces.Box(20, 30, (1,)), clip_box=(-10, 10))


def test_clip_reals_limits_what_two_sided_components_reach():
    dist = NormalDist(spaces.Box(0, 1, (1,)), clip_reals=(-2, 2))
    reached = dist.decode(KEY, np.float32([[-50], [50]]))
    np.testing.assert_allclose(reached[:, 0], scipy.special.expit([-2, 2]), rtol=1e-5)
    np.testing.assert_allclose(dist.preprocess_variate(KEY, np.float32([[0], [1]]))[:, 0], [-2, 2])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.int8])
def test_integer_boxes_are_decoded_and_then_rounded(dtype):
    """F26."""
    space = spaces.Box(-5 if np.dtype(dtype).kind == "i" else 0, 100, (2,), dtype)
    dist = NormalDist(space)
    values = np.stack([np.arange(int(space.low[0]), 101)] * 2, axis=1).astype(dtype)
    X = dist.preprocess_variate(KEY, values)
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(dist.decode(KEY, X), values)
    member = dist.postprocess_variate(KEY, np.float32([[40, -40]]))
    assert member in space and member.dtype == dtype
    np.testing.assert_array_equal(member, [100, space.low[1]])


def test_integers_have_equal_shares_of_the_sigmoid():
    """F26: a uniform position in the interval gives each integer alike, the outer ones too."""
    dist = NormalDist(spaces.Box(0, 3, (1,), np.int32))
    uniform = (np.arange(4000) + 0.5) / 4000
    decoded = np.asarray(dist.decode(KEY, scipy.special.logit(uniform)[:, None].astype(np.float32)))
    np.testing.assert_allclose(np.bincount(decoded[:, 0]), 1000, atol=2)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_at_the_ends_of_their_dtype_do_not_wrap(dtype):
    space = spaces.Box(np.iinfo(dtype).min, np.iinfo(dtype).max, (1,), dtype)
    decoded = np.asarray(NormalDist(space).decode(KEY, np.float32([[-3e38], [3e38], [0]])))
    assert decoded[0, 0] < -2e9 and decoded[1, 0] > 2e9 and abs(decoded[2, 0]) < 2


def test_boolean_boxes_work():
    space = spaces.Box(0, 1, (2,), np.bool_)
    dist = NormalDist(space)
    member = dist.postprocess_variate(KEY, dist.preprocess_variate(KEY, np.array([True, False])))
    assert member in space
    np.testing.assert_array_equal(member, [True, False])


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_float_boxes_give_members(dtype):
    """F27."""
    space = spaces.Box(-0.1, 0.1, (3,), dtype)
    for size in (-50, 0.3, 50):
        member = NormalDist(space).postprocess_variate(KEY, np.full((1, 3), size, np.float32))
        assert member in space and member.dtype == dtype and member.flags.writeable


def test_decoding_is_differentiable_also_far_out():
    gradient = jax.vmap(jax.grad(lambda u: NormalDist(ODD).decode(KEY, jnp.full((1, 7), u)).sum()))
    assert np.isfinite(gradient(jnp.array([-100.0, -20, 0, 20, 100]))).all()
    slopes = jax.grad(lambda x: NormalDist(ODD).preprocess_variate(KEY, x).sum())(jnp.asarray(ODD.low + 0.5))
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"space": spaces.Discrete(3)}, TypeError, "space must be a Box"),
        ({"space": REALS, "clip_logvar": (1, -1)}, ValueError, "clip_logvar must be ascending"),
        ({"space": REALS, "clip_reals": (0, 0)}, ValueError, "clip_reals must be ascending"),
        ({"space": spaces.Box(0, 1, (0,))}, TypeError, "nothing in it"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, says):
    with pytest.raises(error, match=says):
        NormalDist(**arguments)
