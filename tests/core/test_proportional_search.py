import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.core.proportional_search import FANOUT, ProportionalSearch, exact_inverse_cdf


def sums_above(leaves, steps):
    """The leaves, and the levels of sums of ``FANOUT`` above them."""
    levels = [leaves]
    for _ in range(steps):
        levels.append(levels[-1].reshape(-1, FANOUT).sum(axis=1))
    return levels


def share_of(values, index):
    """Where the stretch of a leaf begins and ends."""
    ends = np.cumsum(values) / np.sum(values)
    return ends[index] - (values / values.sum())[index], ends[index]


@given(
    values=st.lists(st.sampled_from([0.0, 1e-12, 0.1, 0.3, 1.0, 1e9]), min_size=1, max_size=200).filter(any),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=50, deadline=None)
def test_the_exact_search_never_finds_a_value_of_zero(values, seed):
    values = np.array(values)
    edges = np.minimum(np.cumsum(values) / values.sum(), 1.0)
    shares = np.concatenate([[0.0, 1.0], edges, np.random.default_rng(seed).random(20)])
    found = exact_inverse_cdf(values, shares)
    start, end = share_of(values, found)
    assert np.all(values[found] > 0)
    assert np.all(start <= shares + 1e-12) and np.all(shares <= end + 1e-12)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_descending_finds_what_the_exact_search_finds(steps):
    rng = np.random.default_rng(steps)
    # whole numbers that add up to a power of two: all sums and shares are exact
    leaves, total = rng.integers(0, 4, FANOUT**3).astype(float), 2.0**14
    leaves[100] += total - leaves.sum()
    mass = np.arange(0, total, 7)
    found = ProportionalSearch(sums_above(leaves, steps)).find(mass / total)
    np.testing.assert_array_equal(found, np.searchsorted(np.cumsum(leaves), mass, side="right"))


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_after_a_write_the_search_is_that_of_a_new_tree_bit_for_bit(steps):
    rng = np.random.default_rng(steps)
    levels = sums_above(rng.random(FANOUT**3), steps)
    search, shares = ProportionalSearch(levels), rng.random(500)
    for _ in range(5):
        blocks, changed = rng.integers(0, FANOUT**2, 3) * FANOUT, []
        levels[0][blocks] = rng.random(3)
        for level, above in itertools.pairwise(levels):
            blocks = blocks // FANOUT
            above[blocks] = level.reshape(-1, FANOUT)[blocks].sum(axis=1)
            changed.append(blocks)
        search.renew(changed)
        np.testing.assert_array_equal(search.find(shares), ProportionalSearch(levels).find(shares))


@pytest.mark.parametrize("leaf", [0.0, np.inf, np.nan])
def test_a_sum_that_cannot_be_shared_is_refused(leaf):
    with pytest.raises(RuntimeError, match="positive and finite"):
        ProportionalSearch([np.full(FANOUT, leaf)]).find(np.array([0.5]))
