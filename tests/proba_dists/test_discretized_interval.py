import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.proba_dists import CategoricalDist, DiscretizedIntervalDist

KEY = jax.random.PRNGKey(0)
SPACE = spaces.Box(-1, 2, (), np.float32)
DIST = DiscretizedIntervalDist(SPACE, num_bins=3)
LOGITS = np.log(np.float32([[0.2, 0.3, 0.5]]))
SIX = DiscretizedIntervalDist.of_range(-2.0, 4.0, 6)


def project(p, atoms, scale, shift, f=lambda x: x, f_inverse=lambda x: x):
    """C51's projection, one atom after the other."""
    width, mass = atoms[1] - atoms[0], np.zeros(len(atoms))
    for probability, atom in zip(p, atoms, strict=True):
        moved = np.clip(f(scale * f_inverse(atom) + shift), atoms[0], atoms[-1])
        position = np.clip((moved - atoms[0]) / width, 0, len(atoms) - 1)
        lower = int(np.floor(position))
        share = position - lower
        mass[lower] += probability * (1 - share)
        if share > 0:
            mass[min(lower + 1, len(atoms) - 1)] += probability * share
    return mass


def test_atoms_are_the_centres_of_the_bins():
    np.testing.assert_allclose(DIST.atoms, [-0.5, 0.5, 1.5])
    assert (DIST.low, DIST.high, DIST.num_bins) == (-1.0, 2.0, 3)
    assert DIST.space == spaces.Discrete(3) and DIST.space_orig is SPACE


def test_is_a_categorical_distribution_over_the_bins():
    other = {"logits": LOGITS[:, ::-1]}
    plain = CategoricalDist(spaces.Discrete(3))
    np.testing.assert_allclose(DIST.entropy({"logits": LOGITS}), plain.entropy({"logits": LOGITS}))
    np.testing.assert_allclose(
        DIST.kl_divergence({"logits": LOGITS}, other), plain.kl_divergence({"logits": LOGITS}, other)
    )


def test_the_example_of_the_contract():
    projected = DIST.affine_transform({"logits": LOGITS}, 0.5, 0.25)
    np.testing.assert_allclose(scipy.special.softmax(projected["logits"]), [[0.1, 0.65, 0.25]], rtol=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.floats(-3, 3), st.floats(-5, 5), st.integers(0, 1000))
def test_the_projection_is_c51s_for_any_scale(scale, shift, seed):
    """F73: negative scales too."""
    logits = np.random.default_rng(seed).normal(size=(1, 6)).astype(np.float32)
    projected = SIX.affine_transform({"logits": logits}, np.float32(scale), np.float32(shift))
    expected = project(scipy.special.softmax(logits[0]), SIX.atoms.astype(float), scale, shift)
    np.testing.assert_allclose(np.exp(projected["logits"][0]), expected, atol=2e-5)


@pytest.mark.parametrize("scale", [0.0, 1.0, -1.0, 0.5, -0.7])
def test_the_projection_keeps_mass_and_where_nothing_is_cut_the_mean(scale):
    logits = np.float32([[-9, 0.5, 0.2, 0.7, -9, -9]])
    p = scipy.special.softmax(logits[0])
    mass = np.exp(SIX.affine_transform({"logits": logits}, scale, 0.25)["logits"][0])
    np.testing.assert_allclose(mass.sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(mass @ SIX.atoms, scale * (p @ SIX.atoms) + 0.25, atol=2e-3)


def test_the_identity_and_per_row_scales():
    logits = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    p = scipy.special.softmax(logits, axis=1)
    np.testing.assert_allclose(np.exp(SIX.affine_transform({"logits": logits}, 1.0, 0.0)["logits"]), p, rtol=1e-4)
    scale, shift = np.float32([0, 0.9, 1.0]), np.float32([1.5, -1, 0])
    mass = np.exp(SIX.affine_transform({"logits": logits}, scale, shift)["logits"])
    for row in range(3):
        np.testing.assert_allclose(mass[row], project(p[row], SIX.atoms, scale[row], shift[row]), atol=1e-5)


def test_the_projection_passes_through_a_value_transform():
    logits = np.random.default_rng(0).normal(size=(1, 6)).astype(np.float32)
    projected = SIX.affine_transform({"logits": logits}, 0.9, 1.0, (jnp.arcsinh, jnp.sinh))
    expected = project(scipy.special.softmax(logits[0]), SIX.atoms.astype(float), 0.9, 1.0, np.arcsinh, np.sinh)
    np.testing.assert_allclose(np.exp(projected["logits"][0]), expected, atol=1e-5)


def test_empty_bins_have_finite_logits():
    projected = DIST.affine_transform({"logits": LOGITS}, 0.0, 0.5)
    np.testing.assert_allclose(projected["logits"], [[np.log(1e-16), 0, np.log(1e-16)]], rtol=1e-5)


def test_a_single_bin_is_a_point():
    dist = DiscretizedIntervalDist.of_range(0, 2, 1)
    logits = dist.affine_transform({"logits": np.zeros((2, 1), np.float32)}, 0.5, 3.0)["logits"]
    np.testing.assert_allclose(logits, 0)
    np.testing.assert_allclose(dist.expected_value({"logits": logits}), 1)


@settings(max_examples=50, deadline=None)
@given(st.floats(-1, 2, width=32))
def test_every_value_of_the_interval_falls_in_its_bin(value):
    """F34: floats, the upper bound included."""
    one_hot = np.asarray(DIST.preprocess_variate(KEY, np.float32(value)))
    assert one_hot.shape == (1, 3) and one_hot.sum() == 1
    assert abs(DIST.atoms[one_hot[0].argmax()] - value) <= 0.5 + 1e-6


def test_values_beyond_the_interval_fall_in_the_outer_bins():
    one_hot = DIST.preprocess_variate(KEY, np.float32([-100, -1, 2, 100]))
    np.testing.assert_array_equal(np.argmax(one_hot, axis=1), [0, 0, 2, 2])


def test_samples_and_modes_decode_to_atoms_and_the_expectation_is_apart():
    """F33."""
    params = {"logits": np.tile(LOGITS, (500, 1))}
    X = DIST.sample(params, KEY)
    decoded = np.asarray(DIST.decode(KEY, X))
    assert set(np.unique(decoded)) == {-0.5, 0.5, 1.5}
    np.testing.assert_array_equal(DIST.value_of(X), decoded)
    assert DIST.postprocess_variate(KEY, DIST.mode(params)) == 1.5
    np.testing.assert_allclose(DIST.expected_value(params)[:1], [0.2 * -0.5 + 0.3 * 0.5 + 0.5 * 1.5], rtol=1e-5)
    np.testing.assert_array_equal(np.argmax(DIST.preprocess_variate(KEY, decoded), axis=1), np.argmax(X, axis=1))


def test_value_of_takes_any_leading_axes():
    X = jax.random.normal(KEY, (2, 4, 3))
    np.testing.assert_array_equal(DIST.value_of(X), DIST.atoms[np.argmax(X, axis=-1)])
    ties = DIST.value_of(jnp.zeros((200, 3)), KEY)
    assert set(np.unique(ties)) == {-0.5, 0.5, 1.5}


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decoded_values_have_the_shape_and_dtype_of_the_box(shape, dtype):
    space = spaces.Box(-1, 2, shape, dtype)
    dist = DiscretizedIntervalDist(space, 4)
    member = dist.postprocess_variate(KEY, dist.sample(dist.default_priors, KEY))
    assert member in space and member.shape == shape and member.dtype == dtype
    assert dist.preprocess_variate(KEY, member).shape == (1, 4)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (np.float32(-1), np.float64(2)), (jnp.float32(-1), jnp.arcsinh(100.0)), (np.int64(3), 4)]
)
def test_a_range_may_be_numbers_of_any_type(low, high):
    """F31, F35."""
    dist = DiscretizedIntervalDist.of_range(low, high, 5)
    assert type(dist.low) is float and type(dist.high) is float
    np.testing.assert_allclose([dist.low, dist.high], [float(low), float(high)])


@pytest.mark.parametrize(("low", "high"), [(1, 0), (1, 1), (-np.inf, 1), (0, np.nan), (None, 1), ("a", 1), ([0, 1], 2)])
def test_ranges_that_are_no_interval_are_refused(low, high):
    """F35."""
    with pytest.raises(TypeError, match="low and high must be"):
        DiscretizedIntervalDist.of_range(low, high)


@pytest.mark.parametrize(
    "space",
    [spaces.Discrete(3), spaces.Box(0, 1, (2,)), spaces.Box(0, np.inf, ()), spaces.Box(0, 9, (), np.int32)],
    ids=str,
)
def test_spaces_that_are_no_interval_are_refused(space):
    with pytest.raises(TypeError, match="DiscretizedIntervalDist"):
        DiscretizedIntervalDist(space)


@pytest.mark.parametrize("num_bins", [0, -1, 2.5, True, "3"])
def test_numbers_of_bins_that_are_none_are_refused(num_bins):
    with pytest.raises(TypeError):
        DiscretizedIntervalDist(SPACE, num_bins)


@pytest.mark.parametrize("num_bins", [5, 51])
def test_nan_stays_nan_in_its_row_and_only_there(num_bins):
    """With all optimizations too, under which XLA's kernels on CPUs take maximum(NaN, 0) for 0."""
    dist = DiscretizedIntervalDist.of_range(-10, 10, num_bins)
    shift, scale = jnp.array([np.nan, 0.0, 1.0, np.nan] * 2), jnp.ones(8)

    def transform(shift):
        return dist.affine_transform({"logits": jnp.zeros((8, num_bins))}, scale, shift)["logits"]

    options = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}
    for logits in (transform(shift), jax.jit(transform).lower(shift).compile(options)(shift)):
        assert np.isnan(logits).all(axis=1).tolist() == np.isnan(shift).tolist()
        assert np.isnan(logits).any(axis=1).tolist() == np.isnan(shift).tolist()
