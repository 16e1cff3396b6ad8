import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from gymnasium import spaces

from triax.proba_dists import CategoricalDist, mask_logits

KEY = jax.random.PRNGKey(0)
SPACE = spaces.Discrete(5, start=-2)
DIST = CategoricalDist(SPACE)
LOGITS = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
PARAMS = {"logits": LOGITS}
MASK = np.array([[1, 1, 1, 1, 1], [0, 1, 1, 0, 1], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0]], bool)


def test_matches_scipy():
    p, other = scipy.special.softmax(LOGITS, axis=1), scipy.special.softmax(-LOGITS, axis=1)
    np.testing.assert_allclose(DIST.mean(PARAMS), p, rtol=1e-5)
    np.testing.assert_allclose(DIST.entropy(PARAMS), scipy.stats.entropy(p, axis=1), rtol=1e-5)
    np.testing.assert_allclose(
        DIST.kl_divergence(PARAMS, {"logits": -LOGITS}), scipy.stats.entropy(p, other, axis=1), rtol=1e-5
    )
    np.testing.assert_allclose(DIST.cross_entropy(PARAMS, {"logits": -LOGITS}), -(p * np.log(other)).sum(1), rtol=1e-5)
    for value in range(-2, 3):
        X = DIST.preprocess_variate(KEY, np.full(4, value))
        np.testing.assert_allclose(DIST.log_proba(PARAMS, X), np.log(p[:, value + 2]), rtol=1e-5)


def test_logits_that_are_integers_are_taken_as_floats():
    X = DIST.preprocess_variate(KEY, np.arange(4) - 2)
    np.testing.assert_allclose(DIST.log_proba({"logits": np.zeros((4, 5), int)}, X), -np.log(5), rtol=1e-6)


def test_constant_offsets_of_the_logits_change_nothing():
    np.testing.assert_allclose(DIST.entropy({"logits": LOGITS + 1e4}), DIST.entropy(PARAMS), rtol=1e-3)


def test_decoded_samples_have_the_probabilities_of_the_distribution():
    params = {"logits": jnp.tile(LOGITS[:1], (8000, 1))}
    X = DIST.sample(params, KEY)
    np.testing.assert_allclose(X.sum(axis=1), 1, atol=1e-5)
    counts = np.bincount(np.asarray(DIST.decode(KEY, X)) + 2, minlength=5)
    assert scipy.stats.chisquare(counts, 8000 * scipy.special.softmax(LOGITS[0].astype(float))).pvalue > 1e-3


def test_log_proba_of_a_sample_is_that_of_the_action_returned():
    """F29: exactly, so that the first ratio of an unchanged policy is 1."""
    X, log_p = DIST.sample_with_log_proba(PARAMS, KEY)
    action = DIST.decode(KEY, X)
    expected = scipy.special.log_softmax(LOGITS, axis=1)[np.arange(4), np.asarray(action) + 2]
    np.testing.assert_allclose(log_p, expected, rtol=1e-5)
    np.testing.assert_array_equal(log_p, DIST.log_proba(PARAMS, DIST.preprocess_variate(KEY, action)))


def test_the_mode_is_relaxed_and_decodes_to_the_most_probable_value():
    mode = DIST.mode(PARAMS)
    np.testing.assert_allclose(mode, scipy.special.softmax(LOGITS / 0.2, axis=1), rtol=1e-4)
    np.testing.assert_array_equal(DIST.decode(KEY, mode), LOGITS.argmax(axis=1) - 2)


def test_the_temperature_makes_samples_harder():
    soft, hard = (CategoricalDist(SPACE, tau).sample(PARAMS, KEY).max(axis=1) for tau in (5.0, 0.01))
    assert (soft < 0.7).all() and (hard > 0.99).all()


def test_every_value_survives_the_round_trip_with_start():
    """F23."""
    values = np.arange(-2, 3)
    X = DIST.preprocess_variate(KEY, values)
    np.testing.assert_array_equal(X, np.eye(5))
    np.testing.assert_array_equal(DIST.decode(KEY, X), values)
    member = DIST.postprocess_variate(KEY, X, index=4)
    assert type(member) is int and member == 2 and member in SPACE


def test_ties_are_decoded_at_random():
    decoded = np.asarray(DIST.decode(KEY, jnp.zeros((3000, 5))))
    assert scipy.stats.chisquare(np.bincount(decoded + 2, minlength=5)).pvalue > 1e-3


@pytest.mark.parametrize("low", [-np.inf, np.finfo(np.float32).min, -1e30])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_masked_actions_have_probability_zero_and_everything_is_finite(low, shift):
    """Pitfall 17: oracle is the distribution over the allowed actions alone."""
    p = {"logits": np.where(MASK, LOGITS + shift, low).astype(np.float32)}
    q = {"logits": np.where(MASK, -LOGITS, low).astype(np.float32)}
    for row in range(4):
        allowed = MASK[row]
        inside = scipy.special.softmax(LOGITS[row][allowed])
        other = scipy.special.softmax(-LOGITS[row][allowed])
        assert (np.asarray(DIST.mean(p))[row][~allowed] == 0).all()
        np.testing.assert_allclose(DIST.mean(p)[row][allowed], inside, rtol=1e-4)
        np.testing.assert_allclose(DIST.entropy(p)[row], scipy.stats.entropy(inside), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(
            DIST.kl_divergence(p, q)[row], scipy.stats.entropy(inside, other), rtol=1e-3, atol=1e-6
        )
        np.testing.assert_allclose(DIST.cross_entropy(p, q)[row], -(inside * np.log(other)).sum(), rtol=1e-4, atol=1e-6)
    for value in range(5):
        assert np.isfinite(DIST.log_proba(p, DIST.preprocess_variate(KEY, np.full(4, value - 2)))).all()


@pytest.mark.parametrize("low", [-np.inf, -1e30])
def test_masked_actions_give_finite_gradients_and_none_to_the_masked(low):
    logits = jnp.where(MASK, LOGITS, low)

    def loss(logits):
        p, q = {"logits": logits}, {"logits": jnp.where(MASK, -LOGITS, low)}
        X, log_p = DIST.sample_with_log_proba(p, KEY)
        return (
            log_p + DIST.entropy(p) + DIST.kl_divergence(p, q) + DIST.cross_entropy(q, p) + DIST.log_proba(p, X)
        ).sum() + (DIST.mode(p)[:, 2] + DIST.mean(p)[:, 1] * X[:, 2]).sum()

    gradient = np.asarray(jax.grad(loss)(logits))
    assert np.isfinite(gradient).all() and np.any(gradient)
    assert (gradient[~MASK] == 0).all()


def test_masked_actions_are_never_sampled():
    params = {"logits": jnp.tile(jnp.where(MASK[1], LOGITS[1], -jnp.inf), (2000, 1))}
    assert set(np.unique(DIST.decode(KEY, DIST.sample(params, KEY)))) == {-1, 0, 2}


@pytest.mark.parametrize("mask", [MASK, MASK.astype(np.int8), jnp.asarray(MASK)], ids=["bool", "int8", "jax"])
def test_mask_logits_keeps_the_allowed_ones_and_stays_finite(mask):
    masked = np.asarray(mask_logits(jnp.asarray(LOGITS), mask))
    np.testing.assert_array_equal(masked[MASK], LOGITS[MASK])
    assert np.isfinite(masked).all()
    p = np.asarray(DIST.mean({"logits": masked}))
    assert (p[~MASK] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)


def test_mask_logits_takes_any_leading_axes():
    logits = jnp.zeros((2, 3, 5))
    masked = mask_logits(logits, np.array([1, 0, 1, 0, 0]))
    np.testing.assert_allclose(jax.nn.softmax(masked), np.broadcast_to([0.5, 0, 0.5, 0, 0], (2, 3, 5)))


def test_a_row_without_allowed_actions_is_an_error_or_nan_inside_jit():
    mask = MASK.copy()
    mask[2] = False
    with pytest.raises(ValueError, match=r"at least one action .* rows \[\[2\]\]"):
        mask_logits(jnp.asarray(LOGITS), mask)
    with pytest.raises(ValueError, match="at least one action must be allowed"):
        mask_logits(jnp.zeros(5), np.zeros(5, bool))
    traced = jax.jit(lambda mask: DIST.entropy({"logits": mask_logits(jnp.asarray(LOGITS), mask)}))(mask)
    np.testing.assert_array_equal(np.isnan(traced), [False, False, True, False])
    assert np.isnan(DIST.entropy({"logits": jnp.full((1, 5), -jnp.inf)})).all()


def test_half_precision_logits_work():
    params = {"logits": jnp.asarray(np.where(MASK, LOGITS, -np.inf), jnp.bfloat16)}
    p = np.asarray(DIST.mean(params), np.float32)
    assert (p[~MASK] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=0.02)
    assert np.isfinite(np.asarray(DIST.entropy({"logits": params["logits"].astype(jnp.float16)}), np.float32)).all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="must be Discrete"):
        CategoricalDist(spaces.Box(0, 1, (2,)))
    with pytest.raises(ValueError, match="gumbel_softmax_tau must be positive"):
        CategoricalDist(SPACE, gumbel_softmax_tau=0.0)
    with pytest.raises(NotImplementedError, match="cannot be scaled"):
        DIST.affine_transform(PARAMS, 1.0, 0.0)
    for bad in (np.zeros((2, 2), int), np.zeros(2)):
        with pytest.raises(ValueError):
            DIST.preprocess_variate(KEY, bad)


@pytest.mark.parametrize("shape", [(), (2,), (4, 3), (5, 4), (1, 4, 3)])
def test_a_mask_of_another_shape_is_refused_with_both_shapes(shape):
    for mask in (mask_logits, jax.jit(mask_logits)):
        with pytest.raises(ValueError, match=re.escape(f"must have the shape of the logits, (5, 3); got {shape}")):
            mask(jnp.zeros((5, 3)), np.ones(shape, bool))


@pytest.mark.parametrize("shape", [(3,), (1,), (1, 3), (5, 1), (5, 3)])
def test_a_mask_broadcasts_to_the_logits(shape):
    assert mask_logits(jnp.zeros((5, 3)), np.ones(shape, bool)).tolist() == np.zeros((5, 3)).tolist()
