"""The distribution of the return from a state: atoms and means in original units."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import triax
from triax.losses.value_transforms import LogTransform

from .networks import DISCRETE, KINDS, assert_number, func_of, s

PROBABILITIES = np.array([0.1, 0.4, 0.3, 0.2])
LOGITS = np.log(PROBABILITIES).astype(np.float32)


def constant(S, is_training):
    return {"logits": jnp.broadcast_to(LOGITS, (len(S), 4))}


@functools.cache
def v_function(transform=None, value_range=(-2.0, 6.0)):
    return triax.StochasticV(constant, DISCRETE, value_range, num_bins=4, value_transform=transform, random_seed=0)


ATOMS = np.array([-1.0, 1.0, 3.0, 5.0])  # centres of four bins of [-2, 6]


def transformed_atoms(transform):
    """Centres of four bins between the transformed ends, in original units."""
    f, f_inverse = transform
    low, high = float(f(-2.0)), float(f(6.0))
    return np.asarray(f_inverse(low + (np.arange(4) + 0.5) * (high - low) / 4))


def test_the_attributes_say_what_the_bins_are():
    v = v_function()
    assert v.num_bins == 4 and v.value_range == (-2.0, 6.0)
    np.testing.assert_allclose(v.proba_dist.atoms, ATOMS)


def test_samples_are_atoms_with_their_log_probabilities():  # F33
    v = v_function()
    for _ in range(20):
        value, logp = v(s, return_logp=True)
        assert_number(value), assert_number(logp)
        (index,) = np.flatnonzero(value == ATOMS)
        assert logp == pytest.approx(LOGITS[index], abs=1e-5)


def test_samples_come_as_often_as_their_probabilities_say():
    v = v_function()
    counts = np.unique([float(v(s)) for _ in range(1000)], return_counts=True)[1]
    assert stats.chisquare(counts, 1000 * PROBABILITIES).pvalue > 1e-3


def test_mean_and_mode_are_those_of_the_bins():
    v = v_function()
    assert_number(v.mean(s)), assert_number(v.mode(s))
    assert v.mean(s) == pytest.approx(PROBABILITIES @ ATOMS, rel=1e-5)
    assert v.mode(s) == 1.0
    np.testing.assert_allclose(v.dist_params(s)["logits"], LOGITS)


@pytest.mark.parametrize("transform", [LogTransform(0.5), (jnp.arcsinh, jnp.sinh)])
def test_results_are_in_original_units(transform):  # F31
    v, atoms = v_function(transform), transformed_atoms(transform)
    assert v.mean(s) == pytest.approx(PROBABILITIES @ atoms, rel=1e-4)
    assert v.mode(s) == pytest.approx(atoms[1], rel=1e-4)
    assert np.isclose(v(s), atoms, rtol=1e-4).sum() == 1


@pytest.mark.parametrize("kind", [*KINDS, "memory"])
def test_every_kind_of_func_serves(kind):
    func = func_of(triax.StochasticV.example_data(DISCRETE, (-1, 1), num_bins=5), kind)
    v = triax.StochasticV(func, DISCRETE, (-1, 1), num_bins=5)
    result = v.mean(s, v.initial_carry())[0] if kind == "memory" else v.mean(s)
    assert -1 < result < 1


@pytest.mark.parametrize("ends", [(-2, 6), [-2.0, 6.0], np.array([-2, 6]), (np.float32(-2), np.int64(6))])
def test_a_range_is_any_pair_of_numbers(ends):  # F35
    v = triax.StochasticV(constant, DISCRETE, ends, 4)
    assert v.value_range == (-2.0, 6.0) and all(type(end) is float for end in v.value_range)


BAD_RANGES = [("0", "1"), (1, -1), (0, 0), (0,), (0, 1, 2), 3.0, "ab", (0, np.inf), (np.nan, 1), ("a", "b"), None]


@pytest.mark.parametrize("value_range", BAD_RANGES)
@pytest.mark.parametrize("cls", [triax.StochasticV, triax.StochasticQ, triax.StochasticRewardFunction])
def test_a_bad_range_is_refused_everywhere(cls, value_range):  # F35
    if value_range is None and cls is not triax.StochasticV:
        return  # quantiles
    said = f"{cls.__name__}: value_range must be a pair of two finite numbers, low < high; got"
    with pytest.raises(TypeError, match=said):
        cls(constant, DISCRETE, value_range, 4)


@pytest.mark.parametrize("num_bins", [0, -1, True])
def test_a_bad_number_of_bins_is_refused(num_bins):
    with pytest.raises(TypeError, match="num_bins must be a positive integer"):
        triax.StochasticV(constant, DISCRETE, (0, 1), num_bins)


def test_another_number_of_bins_is_refused():
    said = r"StochasticV: .*\['logits'\]: \(8, 4\) float32 \(expected \(8, 51\) float32\)"
    with pytest.raises(TypeError, match=said):
        triax.StochasticV(constant, DISCRETE, (0, 1))
