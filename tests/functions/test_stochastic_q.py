"""Distributions of the return of an action: bins or quantiles, one action or all; rewards by another name."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from gymnasium import spaces
from scipy import stats

import triax
from triax.losses.value_transforms import LogTransform

from .networks import DISCRETE, REALS, assert_number, assert_trees_close, env_of, func_of, s

START = env_of(spaces.Discrete(3, start=5))
RANGE, ATOMS = (-1.0, 3.0), np.array([-0.5, 0.5, 1.5, 2.5])
CASES = [(RANGE, "type1"), (RANGE, "type2"), (None, "type2")]


@functools.cache
def q_function(value_range=RANGE, form="type2", env=START, kind="module", cls=triax.StochasticQ, **kwargs):
    example = getattr(cls.example_data(env, value_range, num_bins=4, **kwargs), form)
    return cls(func_of(example, kind), env, value_range, num_bins=4, random_seed=0, **kwargs)


@pytest.fixture(scope="module", params=CASES, ids=str)
def q(request):
    return q_function(*request.param)


def support(q, a):
    """The values that a sample may take, and their probabilities."""
    params = q.dist_params(s, a)
    if q.value_range is None:
        return params["values"], np.full(4, 0.25)
    return ATOMS, scipy.special.softmax(params["logits"].astype(np.float64))


def test_a_sample_is_one_of_the_values_with_its_log_probability(q):  # F32, F33
    values, probabilities = support(q, 6)
    for _ in range(8):
        value, logp = q(s, 6, return_logp=True)
        assert_number(value), assert_number(logp)
        (index,) = np.flatnonzero(np.isclose(values, value, rtol=1e-5))
        assert logp == pytest.approx(np.log(probabilities[index]), abs=1e-5)


def test_samples_come_as_often_as_their_probabilities_say(q):
    values, probabilities = support(q, 6)
    draws = np.array([q(s, 6) for _ in range(400)])
    counts = np.isclose(draws[:, None], values, rtol=1e-5).sum(0)
    assert counts.sum() == 400
    assert stats.chisquare(counts, 400 * probabilities).pvalue > 1e-3


def test_the_mean_is_the_expectation(q):
    values, probabilities = support(q, 6)
    assert_number(q.mean(s, 6))
    assert q.mean(s, 6) == pytest.approx(values @ probabilities, rel=1e-4)


def test_without_an_action_there_is_a_list_over_all(q):
    samples, logps = q(s, return_logp=True)
    means, params = q.mean(s), q.dist_params(s)
    for results in (samples, logps, means, params, q(s)):
        assert type(results) is list and len(results) == 3
    for i, a in enumerate((5, 6, 7)):  # F23
        assert_number(samples[i]), assert_number(logps[i])
        assert means[i] == pytest.approx(q.mean(s, a), rel=1e-4)
        assert_trees_close(params[i], q.dist_params(s, a))
        assert np.isclose(support(q, a)[0], samples[i], rtol=1e-5).any()


def test_all_actions_are_sampled_independently():
    q = q_function()
    draws = np.array([q(s) for _ in range(60)])
    agree = (draws[:, 0] == draws[:, 1]).mean()
    assert 0.02 < agree < 0.8


def test_the_mode_of_bins_is_the_most_probable_atom():
    q = q_function()
    modes = q.mode(s)
    for i, a in enumerate((5, 6, 7)):
        logits = q.dist_params(s, a)["logits"]
        assert modes[i] == q.mode(s, a) == ATOMS[logits.argmax()]


def test_quantiles_have_no_mode_and_say_so():  # F32
    with pytest.raises(NotImplementedError, match="mode is not defined for a set of quantiles"):
        q_function(None).mode(s, 6)


def test_both_kinds_of_output_know_their_size(q):  # F32
    assert q.num_bins == 4


def test_both_forms_of_the_pure_function_agree(q):
    S = np.stack([s, -s])
    weights = q.params, q.function_state, q.rng
    every, _ = q.function_type2(*weights, S, False)
    one, _ = q.function_type1(*weights, S, np.eye(3, dtype=np.float32)[[2, 0]], False)
    assert_trees_close(one, jax.tree.map(lambda leaf: leaf[np.arange(2), np.array([2, 0])], every))


def test_pure_samples_and_means_have_the_shapes_of_both_forms(q):
    S, A = np.stack([s, -s]), np.eye(3, dtype=np.float32)[:2]
    args = q.params, q.function_state, q.rng, S
    raw = (4,) if q.value_range else ()
    X, logp = q.sample_func_type1(*args, A)
    assert X.shape == (2, *raw) and logp.shape == (2,)
    X, logp = q.sample_func_type2(*args)
    assert X.shape == (2, 3, *raw) and logp.shape == (2, 3)
    means = q.mean_func_type2(*args)
    assert means.shape == (2, 3, *raw)
    np.testing.assert_allclose(means[np.arange(2), np.arange(2)], q.mean_func_type1(*args, A), rtol=1e-4)


def test_pure_modes_of_both_forms_agree():
    q = q_function()
    args = q.params, q.function_state, q.rng, s[None]
    modes = q.mode_func_type2(*args)
    assert modes.shape == (1, 3, 4)
    np.testing.assert_allclose(modes[:, 1], q.mode_func_type1(*args, np.eye(3, dtype=np.float32)[1:2]), rtol=1e-4)


@pytest.mark.parametrize("value_range", [RANGE, None])
def test_results_are_in_original_units(value_range):  # F31
    transform = LogTransform(0.5)
    q = q_function(value_range, value_transform=transform)
    params = q.dist_params(s, 5)
    if value_range is None:
        values, probabilities = transform.inverse_func(params["values"]), np.full(4, 0.25)
    else:
        low, high = (float(transform.transform_func(end)) for end in RANGE)
        values = transform.inverse_func(low + (np.arange(4) + 0.5) * (high - low) / 4)
        probabilities = jax.nn.softmax(params["logits"])
    assert q.mean(s, 5) == pytest.approx(float(values @ probabilities), rel=1e-4)
    assert np.isclose(q(s, 5), values, rtol=1e-4).any()


def test_continuous_actions_need_the_action():
    q = q_function(None, "type1", REALS)
    a = np.array([0.5, 1.0], np.float32)
    assert_number(q(s, a)), assert_number(q.mean(s, a))
    for call in (q, q.mean, q.mode, q.dist_params):
        with pytest.raises(ValueError, match=r"StochasticQ: without an action.*f\(s, a\)"):
            call(s)
    for name in ("sample_func_type2", "mean_func_type2", "mode_func_type2", "function_type2"):
        with pytest.raises(ValueError, match="StochasticQ: without an action"):
            getattr(q, name)


def test_a_reward_function_uses_all_its_arguments():  # F36
    r = q_function(
        cls=triax.StochasticRewardFunction,
        observation_preprocessor=lambda rng, x: x[None, :2],
        value_transform=LogTransform(),
    )
    assert r.num_bins == 4 and r.value_range == RANGE and r.random_seed == 0
    assert jax.tree.leaves(r.params)[1].shape == (2, 12)
    assert r.value_transform == LogTransform()
    assert RANGE[0] < r.mean(s, 5) < RANGE[1]


def test_a_reward_function_without_a_range_has_quantiles():  # F36: reward_range is gone from Gymnasium
    r = q_function(None, cls=triax.StochasticRewardFunction)
    assert set(r.dist_params(s, 5)) == {"values", "quantile_fractions"}


def test_a_carry_is_threaded():
    q = q_function(kind="memory", env=DISCRETE)
    bias, kernel = jax.tree.leaves(q.params)
    carry = q.initial_carry()
    value, logp, carry = q(s, 1, carry, return_logp=True)
    assert_number(value), assert_number(logp)
    params, carry = q.dist_params(-s, 1, carry)
    np.testing.assert_allclose(params["logits"], (s @ kernel + bias).reshape(4, 4)[1], rtol=1e-5)
    means, carry = q.mean(s, carry=carry)
    assert len(means) == 4 and jax.tree.leaves(carry)


@pytest.mark.parametrize(
    "value_range, output, said",
    [
        (RANGE, {"logits": (3, 5)}, r"\['logits'\]: \(8, 3, 5\) float32 \(expected \(8, 3, 4\)"),
        (RANGE, {"values": (3, 4)}, "structure"),
        (None, {"values": (3, 4)}, "structure"),
        (
            None,
            {"values": (4,), "quantile_fractions": (3, 4)},
            r"\['values'\]: \(8, 4\) float32 \(expected \(8, 3, 4\)",
        ),
    ],
)
def test_a_wrong_output_is_refused(value_range, output, said):
    def func(S, is_training):
        return {name: jnp.zeros((len(S), *shape)) for name, shape in output.items()}

    with pytest.raises(TypeError, match=f"StochasticQ: func must return distribution parameters.*{said}"):
        triax.StochasticQ(func, START, value_range, 4)
