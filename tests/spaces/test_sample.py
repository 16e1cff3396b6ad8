import jax
import numpy as np
import pytest
import scipy.stats
from gymnasium import spaces
from hypothesis import given, settings

from space_strategies import any_space
from triax.spaces import safe_sample, sample_batch


def assert_same(x, y):
    jax.tree.map(np.testing.assert_array_equal, x, y)


@settings(max_examples=60, deadline=None)
@given(any_space)
def test_is_a_member_with_the_dtype_of_the_space(space):
    """F87."""
    member = safe_sample(space, 1)
    assert member in space
    for a, b in zip(jax.tree.leaves(member), jax.tree.leaves(space.sample()), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(5, 10, (3,)),
        spaces.Box(-np.inf, np.inf, (50,)),
        spaces.Box(np.array([-np.inf, 3.0]), np.array([-3.0, np.inf]), dtype=np.float64),
        spaces.Box(-3.4e38, 3.4e38, (50,)),
        spaces.Box(-1.7e308, 1.7e308, (50,), np.float64),
        spaces.Box(0, 255, (20, 20), np.uint8),
        spaces.Box(-128, 127, (400,), np.int8),
        spaces.Box(-np.inf, np.inf, (50,), np.int64),
        spaces.Box(0, 2**64 - 1, (50,), np.uint64),
        spaces.Box(0, 1, (50,), np.bool_),
        spaces.Box(2, 2, (5,)),
        spaces.Box(0, 1, (5,), np.float16),
        spaces.Discrete(3, start=-9),
        spaces.Discrete(3, dtype=np.uint8),
        spaces.MultiDiscrete(np.array(3)),
    ],
    ids=str,
)
def test_stays_inside_at_extreme_bounds(space):
    """F87: `Box(5, 10)`, huge bounds, `start`."""
    for seed in range(20):
        member = safe_sample(space, seed)
        assert member in space
        assert np.all(np.abs(np.asarray(member, np.float64)) < 1e3)


@pytest.mark.parametrize("make", [np.int64, np.random.RandomState, np.random.default_rng])
def test_a_seed_fixes_the_sample_and_a_generator_advances(make):
    space = spaces.Tuple([spaces.Box(0, 1, (3,)), spaces.Discrete(1000)])
    first, second = make(5), make(5)
    assert_same(safe_sample(space, first), safe_sample(space, second))
    if make is not np.int64:
        assert not np.array_equal(safe_sample(space, first)[0], safe_sample(space, make(5))[0])


def test_no_other_generator_is_touched():
    space = spaces.Dict(a=spaces.Box(0, 1, (3,)), b=spaces.Discrete(5))
    space.seed(3)
    np.random.seed(3)
    expected, expected_global = space.sample(), np.random.random()
    space.seed(3)
    np.random.seed(3)
    safe_sample(space), safe_sample(space, 1), sample_batch(space, 3, None)
    assert_same(space.sample(), expected)
    assert np.random.random() == expected_global


def test_bounded_components_are_uniform():
    floats = safe_sample(spaces.Box(5, 10, (4000,)), 0)
    assert scipy.stats.kstest(floats, scipy.stats.uniform(5, 5).cdf).pvalue > 1e-3
    integers = safe_sample(spaces.Box(-2, 3, (6000,), np.int32), 0)
    assert scipy.stats.chisquare(np.bincount(integers + 2, minlength=6)).pvalue > 1e-3
    discrete = sample_batch(spaces.MultiDiscrete([3, 2], start=[1, 0]), 6000, 0)
    assert scipy.stats.chisquare(np.bincount(discrete[:, 0])[1:]).pvalue > 1e-3


def test_a_batch_holds_members_in_its_rows():
    space = spaces.Dict(
        a=spaces.Tuple([spaces.Discrete(3, start=4), spaces.MultiBinary((2, 2))]),
        b=spaces.Box(0, 9, (), np.int64),
    )
    batch = sample_batch(space, 7, 0)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(batch)} == {7}
    assert {int(value) for value in batch["a"][0]} <= {4, 5, 6}
    assert batch["b"].dtype == np.int32
