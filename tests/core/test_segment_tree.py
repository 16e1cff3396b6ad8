import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from triax.core.errors import NonFiniteError
from triax.core.segment_tree import MaxTree, MinTree, SegmentTree, SumTree

CAPACITIES = [1, 2, 3, 15, 16, 17, 100, 257, 5000]
NUMPY_REDUCERS = {SumTree: np.sum, MinTree: np.min, MaxTree: np.max}


def filled(tree_class, capacity, seed=0):
    tree, values = tree_class(capacity), np.random.default_rng(seed).random(capacity)
    tree.set_values(..., values)
    return tree, values


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("tree_class", NUMPY_REDUCERS)
def test_the_root_is_the_reduction_of_all_leaves(tree_class, capacity):
    tree, values = filled(tree_class, capacity)
    assert tree.root_value == pytest.approx(NUMPY_REDUCERS[tree_class](values), rel=1e-12)
    np.testing.assert_array_equal(tree.values, values)


@pytest.mark.parametrize("tree_class", NUMPY_REDUCERS)
@given(
    capacity=st.integers(1, 600),
    seed=st.integers(0, 2**31),
    rounds=st.lists(st.integers(0, 700), min_size=1, max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_batched_writes_and_range_reductions_agree_with_a_plain_array(tree_class, capacity, seed, rounds):
    rng = np.random.default_rng(seed)
    tree = tree_class(capacity)
    plain = tree.values.copy()
    for n in rounds:
        idx, values = rng.integers(-capacity, capacity, n), rng.random(n)
        tree.set_values(idx, values)
        for i, value in zip(idx, values, strict=True):
            plain[i] = value
        start = rng.integers(0, capacity, 20)
        stop = rng.integers(start, capacity) + 1
        expected = [NUMPY_REDUCERS[tree_class](plain[i:j]) for i, j in zip(start, stop, strict=True)]
        np.testing.assert_allclose(tree.partial_reduce(start, stop), expected, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(tree.root_value, NUMPY_REDUCERS[tree_class](plain), rtol=1e-12)
    np.testing.assert_array_equal(tree.values, plain)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_levels_are_those_of_a_binary_tree(capacity):
    tree, values = filled(SumTree, capacity)
    assert tree.height == int(np.ceil(np.log2(capacity))) + 1
    level = np.zeros(2 ** (tree.height - 1))
    level[:capacity] = values
    for k in range(tree.height - 1, -1, -1):
        np.testing.assert_allclose(tree[k], level, rtol=1e-12)
        np.testing.assert_array_equal(tree[k - tree.height], tree[k])
        assert tree[k, -1] == tree[k][-1]
        level = level.reshape(-1, 2).sum(axis=1) if k else level
    with pytest.raises(IndexError, match="level"):
        tree[tree.height]


def test_a_reducer_need_not_commute():
    def keep_last(left, right):
        return np.where(np.isnan(right), left, right)

    tree = SegmentTree(1000, keep_last, np.nan)
    tree.set_values(range(700), np.arange(700))
    assert tree.root_value == 699
    np.testing.assert_array_equal(tree.partial_reduce([0, 3, 20, 650], [1, 400, 300, 1000]), [0, 399, 299, 699])


def test_what_an_index_may_be():
    tree = SumTree(10)
    tree.set_values(None, 1.0)
    tree.set_values(-1, 5.0)
    tree.set_values([0, 2], [2.0, 3.0])
    tree.set_values(np.array([4, 4]), [7.0, 8.0])
    tree.set_values([], [])
    np.testing.assert_array_equal(tree.values, [2, 1, 3, 1, 8, 1, 1, 1, 1, 5])


@pytest.mark.parametrize("idx", [10, -11, [3, 10], 1.0, [0.5], slice(3), "a", True, [[1, 2]], (3, [4])])
def test_an_impossible_index_is_refused_and_nothing_is_written(idx):
    tree = SumTree(10)
    with pytest.raises((IndexError, ValueError)):
        tree.set_values(idx, 1.0)
    assert tree.root_value == 0
    np.testing.assert_array_equal(tree.values, np.zeros(10))


def test_a_wrong_number_of_values_writes_nothing():
    tree = SumTree(10)
    with pytest.raises(ValueError):
        tree.set_values([1, 2, 3], [1.0, 2.0])
    assert not tree.values.any() and tree.root_value == 0


def test_leaves_cannot_be_changed_behind_the_tree():
    tree = SumTree(10)
    with pytest.raises(ValueError, match="read-only"):
        tree.values[3] = 1.0
    idx = np.array([1, 2])
    tree.set_values(idx, 1.0)
    idx[:] = 9  # the caller's array is his own
    assert tree.root_value == 2.0


def test_what_partial_reduce_takes():
    tree, values = filled(SumTree, 100)
    assert tree.partial_reduce().shape == tree.partial_reduce(3, -5).shape == (1,)
    np.testing.assert_allclose(tree.partial_reduce(), values.sum())
    np.testing.assert_allclose(tree.partial_reduce(3, -5), values[3:-5].sum())
    np.testing.assert_allclose(tree.partial_reduce(-5), values[-5:].sum())
    np.testing.assert_allclose(tree.partial_reduce([1, 2], 50), [values[1:50].sum(), values[2:50].sum()])


@pytest.mark.parametrize(
    ("start", "stop", "error"),
    [
        (3, 3, IndexError),
        (4, 3, IndexError),
        (0, 11, IndexError),
        (-11, 3, IndexError),
        ([0, 5], [3, 5], IndexError),
        (0.0, 3, TypeError),
        (0, "3", TypeError),
        ([[0]], 3, TypeError),
        ([0, 1], [2, 3, 4], ValueError),
    ],
)
def test_an_impossible_range_is_refused(start, stop, error):
    with pytest.raises(error, match=r"start|stop"):
        SumTree(10).partial_reduce(start, stop)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_sum_tree_refuses_what_would_poison_it(bad):  # F19
    tree = SumTree(10)
    tree.set_values(..., 1.0)
    with pytest.raises(NonFiniteError, match="finite"):
        tree.set_values([1, 2], [3.0, bad])
    with pytest.raises(ValueError, match="negative"):
        tree.set_values([1, 2], [3.0, -1e-9])
    assert tree.root_value == 10.0


@pytest.mark.parametrize("tree_class", [MinTree, MaxTree])
def test_extreme_trees_take_infinities_and_refuse_nan(tree_class):
    tree = tree_class(10)
    tree.set_values(..., 1.0)
    tree.set_values(3, tree.init_value)
    with pytest.raises(NonFiniteError, match="NaN"):
        tree.set_values(0, np.nan)
    assert tree.root_value == 1.0


@pytest.mark.parametrize("capacity", [0, -1, 2.0, True, "8"])
def test_capacity_must_be_a_positive_int(capacity):
    with pytest.raises(TypeError, match="capacity"):
        SumTree(capacity)


@given(
    values=st.lists(st.sampled_from([0.0, 1e-12, 0.1, 0.3, 1.0, 1e9]), min_size=1, max_size=400),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=50, deadline=None)
def test_inverse_cdf_always_finds_a_leaf_with_weight(values, seed):  # F15
    if not any(values):
        values[0] = 1.0
    tree = SumTree(len(values))
    tree.set_values(..., values)
    cumulated = np.cumsum(values)
    edges = np.minimum(cumulated / cumulated[-1], 1.0)
    shares = np.concatenate([[0.0, 1.0], edges, np.random.default_rng(seed).random(50)])
    found = tree.inverse_cdf(shares)
    assert np.all(np.asarray(values)[found] > 0)
    # the leaf's stretch of the cumulated sum holds the share, up to rounding
    slack = 1e-12 * cumulated[-1]
    mass = shares * cumulated[-1]
    assert np.all(cumulated[found] >= mass - slack)
    assert np.all(cumulated[found] - np.asarray(values)[found] <= mass + slack)


@pytest.mark.parametrize("capacity", [3, 16, 40, 300, 2**14, 40_000])
def test_inverse_cdf_is_where_the_cumulated_share_first_exceeds_u(capacity):
    # whole numbers sum exactly, so the answer is known exactly, at the edges of leaves too
    values = np.random.default_rng(1).integers(0, 3, capacity).astype(float)
    total = 2.0**16
    values[1] += total - values.sum()
    tree = SumTree(capacity)
    tree.set_values(..., values)
    mass = np.unique(np.concatenate([np.linspace(0, total - 1, 500).round(), np.cumsum(values)[:-1][-200:]]))
    mass = mass[mass < total]
    ends = list(itertools.accumulate(values))
    expected = [next(i for i, end in enumerate(ends) if end > m) for m in mass[:300]]
    np.testing.assert_array_equal(tree.inverse_cdf(mass[:300] / total), expected)


def test_inverse_cdf_of_scalars_and_its_refusals():
    tree = SumTree(3)
    with pytest.raises(RuntimeError, match="positive"):
        tree.inverse_cdf(0.5)
    with pytest.raises(RuntimeError, match="positive"):
        tree.sample(1)
    tree.set_values(..., [1.0, 0.0, 1.0])
    assert [tree.inverse_cdf(u) for u in (0.0, 0.49, 0.5, 1.0)] == [0, 0, 2, 2]
    assert type(tree.inverse_cdf(1.0)) is int
    for u in (-0.1, 1.1, np.nan, [[0.5]]):
        with pytest.raises(ValueError, match="inverse_cdf"):
            tree.inverse_cdf(u)


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("capacity", [6, 20_000])
def test_samples_are_proportional_to_values(stratified, capacity):
    values = np.zeros(capacity)
    used = np.linspace(0, capacity - 1, 6).astype(int)
    values[used] = [1, 2, 3, 4, 0.5, 6]
    tree = SumTree(capacity, random_seed=3)
    tree.set_values(..., values)
    n = 20_000
    counts = np.bincount(tree.sample(n, stratified=stratified), minlength=capacity)
    assert counts.sum() == counts[used].sum() == n
    expected = n * values[used] / values.sum()
    assert stats.chisquare(counts[used], expected).pvalue > 1e-3
    if stratified:
        assert np.all(np.abs(counts[used] - expected) <= 2)


def test_sampling_is_reproducible_and_leaves_the_global_generator_alone():
    state = np.random.get_state()[1].copy()
    trees = [SumTree(50, random_seed=7) for _ in range(2)]
    for tree in trees:
        tree.set_values(..., np.arange(50))
    first = trees[0].sample(20)
    np.testing.assert_array_equal(first, trees[1].sample(20))
    assert not np.array_equal(first, trees[0].sample(20))
    trees[0].random_seed = 7
    np.testing.assert_array_equal(first, trees[0].sample(20))
    np.testing.assert_array_equal(state, np.random.get_state()[1])
    for n in (0, -1, True):
        with pytest.raises(TypeError, match="positive int"):
            trees[0].sample(n)
    with pytest.raises(TypeError):
        trees[0].sample(2.0)
    assert trees[0].sample(np.int64(2)).shape == (2,)


def test_sums_do_not_drift_into_empty_leaves():  # pitfall 22
    tree, rng = SumTree(1000, random_seed=0), np.random.default_rng(0)
    for _ in range(300):
        tree.set_values(rng.integers(0, 500, 64), 10.0 ** rng.uniform(-8, 8, 64))
    assert tree.root_value == pytest.approx(tree.values.sum(), rel=1e-14)
    tree.set_values(range(500), 1e-9)
    assert tree.root_value == pytest.approx(500e-9, rel=1e-12)
    assert tree.sample(5000).max() < 500


def test_many_single_writes_between_reads_are_all_seen():
    tree = SumTree(100)
    for i in range(1000):
        tree.set_values(i % 100, float(i))
    assert tree.root_value == sum(range(900, 1000))
