"""Scalars, bins and quantiles mean the same to a rule: an expectation, a mixture, a backup."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linear_functions import (
    ACTIONS,
    ATOMS,
    BINS,
    STATE,
    B,
    make_binned_q,
    make_q,
    make_quantile_q,
    normal,
    softmax,
)
from triax.learning.estimates import BinnedEstimate, QuantileEstimate, ScalarEstimate, estimate_of, greedy

OUTPUT = normal(B, ACTIONS, BINS)
PROBABILITIES = jnp.asarray(np.random.default_rng(1).dirichlet(np.ones(ACTIONS), B), jnp.float32)
PAIR = (lambda x: 3 * x, lambda y: y / 3)


@pytest.fixture(scope="module")
def binned():
    return estimate_of(make_binned_q(normal(STATE, ACTIONS * BINS)))


@pytest.fixture(scope="module")
def quantile():
    return estimate_of(make_quantile_q(normal(STATE, ACTIONS * BINS)))


def quantiles(values):
    return {"values": jnp.asarray(values), "quantile_fractions": jnp.zeros_like(values)}


def test_each_kind_of_function_has_its_estimate(binned, quantile):
    assert isinstance(estimate_of(make_q(normal(STATE, ACTIONS))), ScalarEstimate)
    assert isinstance(binned, BinnedEstimate)
    assert isinstance(quantile, QuantileEstimate)


def test_the_mixture_of_bins_is_that_of_probabilities(binned):  # F53
    mixed = binned.mix({"logits": OUTPUT}, PROBABILITIES)
    expected = np.einsum("ba,bak->bk", PROBABILITIES, softmax(OUTPUT))
    np.testing.assert_allclose(softmax(np.asarray(mixed["logits"])), expected, rtol=1e-5)


def test_expectations_of_bins_are_over_their_atoms(binned):
    np.testing.assert_allclose(binned.values({"logits": OUTPUT}), softmax(OUTPUT) @ ATOMS, rtol=1e-4, atol=1e-6)


def mixture_quantiles(values, probabilities, count):
    """The smallest value at which the mixture's distribution function reaches each midpoint, by a plain loop."""
    mixed = []
    for row, weights in zip(np.asarray(values, np.float64), np.asarray(probabilities, np.float64), strict=True):
        pairs = sorted((v, w / row.shape[1]) for v_row, w in zip(row, weights, strict=True) for v in v_row)
        levels = np.cumsum([w for _, w in pairs])
        mixed.append([pairs[np.searchsorted(levels, (i + 0.5) / count - 1e-6)][0] for i in range(count)])
    return np.array(mixed)


def test_the_mixture_of_quantiles_has_the_quantiles_of_the_mixture(quantile):  # F53
    mixed = quantile.mix(quantiles(OUTPUT), PROBABILITIES)
    np.testing.assert_allclose(mixed["values"], mixture_quantiles(OUTPUT, PROBABILITIES, BINS), rtol=1e-6)
    np.testing.assert_allclose(mixed["quantile_fractions"][0], (np.arange(BINS) + 0.5) / BINS)


@pytest.fixture(scope="module")
def jitted_mix(quantile):
    return jax.jit(quantile.mix)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_mean_of_a_quantile_mixture_is_near_the_mixture_of_means(jitted_mix, seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.normal(size=(1, ACTIONS, BINS)), axis=-1).astype(np.float32)
    p = rng.dirichlet(np.ones(ACTIONS), 1).astype(np.float32)
    mean = np.mean(jitted_mix(quantiles(values), p)["values"])
    assert abs(mean - np.sum(p * values.mean(-1))) < (values.max() - values.min()) / BINS


def test_an_action_that_is_certain_keeps_its_quantiles_and_fractions(quantile):
    certain = jnp.eye(ACTIONS)[jnp.array([0, 3, 1, 1, 2])]
    fractions = np.random.default_rng(0).uniform(size=OUTPUT.shape).astype(np.float32)
    mixed = quantile.mix({"values": OUTPUT, "quantile_fractions": fractions}, certain)
    np.testing.assert_array_equal(mixed["values"], OUTPUT[np.arange(B), [0, 3, 1, 1, 2]])
    np.testing.assert_array_equal(mixed["quantile_fractions"], fractions[np.arange(B), [0, 3, 1, 1, 2]])


def test_one_uncertain_row_is_mixed_as_in_a_batch_of_its_own(quantile):
    probabilities = jnp.eye(ACTIONS)[jnp.array([0, 3, 1, 1, 2])].at[2].set(jnp.array([0.5, 0.5, 0, 0]))
    mixed = quantile.mix(quantiles(OUTPUT), probabilities)["values"]
    np.testing.assert_allclose(mixed, mixture_quantiles(OUTPUT, probabilities, BINS), rtol=1e-6)


def test_the_smallest_is_chosen_row_by_row_and_whole(binned, quantile):
    first, second = OUTPUT[:, 0], OUTPUT[:, 1]
    rows = np.argmin([softmax(x) @ ATOMS for x in (first, second)], axis=0)
    expected = np.where(rows[:, None] == 0, first, second)
    np.testing.assert_array_equal(binned.smallest([{"logits": first}, {"logits": second}])["logits"], expected)
    rows = np.argmin([x.mean(-1) for x in (first, second)], axis=0)
    expected = np.where(rows[:, None] == 0, first, second)
    np.testing.assert_array_equal(quantile.smallest([quantiles(first), quantiles(second)])["values"], expected)


def test_impossible_bins_of_one_candidate_do_not_spoil_the_other(binned):
    masked = np.array(OUTPUT[:, 0])
    masked[:, :3] = -np.inf
    smallest = binned.smallest([{"logits": masked}, {"logits": OUTPUT[:, 1]}])["logits"]
    assert not np.isnan(smallest).any()


def test_a_certain_value_has_all_the_mass(binned, quantile):
    value = jnp.array([-2.5, 0.5, 1.0])
    p = softmax(np.asarray(binned.certain(value)["logits"]))
    np.testing.assert_allclose(p[:2], np.eye(BINS)[[0, 3]], atol=1e-6)
    np.testing.assert_allclose(p[2], [0, 0, 0, 0.5, 0.5, 0], atol=1e-6)  # between two atoms
    np.testing.assert_array_equal(quantile.certain(value)["values"], np.repeat(value[:, None], BINS, 1))


def test_transformed_functions_estimate_in_original_units():
    scalar = estimate_of(make_q(normal(STATE, ACTIONS), value_transform=PAIR))
    output = jnp.asarray(normal(B, ACTIONS))
    np.testing.assert_allclose(scalar.values(output), output / 3, rtol=1e-6)
    following = scalar.following(output)
    np.testing.assert_allclose(scalar.mix(following, PROBABILITIES), np.sum(PROBABILITIES * output / 3, 1), rtol=1e-5)
    target = scalar.backup(jnp.ones(2), jnp.array([1.0, 2.0]), jnp.array([0.5, 0.0]))
    np.testing.assert_allclose(target, [4.5, 6.0])
    quantile = estimate_of(make_quantile_q(normal(STATE, ACTIONS * BINS), value_transform=PAIR))
    np.testing.assert_allclose(quantile.mean(quantiles(OUTPUT[:, 0])), OUTPUT[:, 0].mean(-1) / 3, rtol=1e-5)
    target = quantile.backup(quantiles(OUTPUT[:, 0]), jnp.ones(B), jnp.full(B, 0.5))["values"]
    np.testing.assert_allclose(target, 3 * (1 + 0.5 * OUTPUT[:, 0] / 3), rtol=1e-5)


def test_greedy_actions_share_ties():
    np.testing.assert_allclose(greedy(jnp.array([[1.0, 3.0, 3.0], [2.0, 1.0, 0.0]])), [[0, 0.5, 0.5], [1, 0, 0]])


def test_mixing_works_under_vmap(quantile):
    stacked = quantiles(np.stack([OUTPUT, -OUTPUT]))
    both = jax.vmap(quantile.mix, in_axes=(0, None))(stacked, PROBABILITIES)["values"]
    np.testing.assert_allclose(both[0], quantile.mix(quantiles(OUTPUT), PROBABILITIES)["values"], rtol=1e-6)
