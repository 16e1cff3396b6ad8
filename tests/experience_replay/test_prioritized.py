import copy
import json
import pickle
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from triax.core.errors import InsufficientCacheError, NonFiniteError
from triax.experience_replay import PrioritizedReplayBuffer

from .batches import joined, nested, numbered, with_idx


def filled(errors, capacity=None, **options):
    """A buffer with one transition for each TD error, added in one batch."""
    errors = np.asarray(errors, np.float64)
    buffer = PrioritizedReplayBuffer(capacity or len(errors), random_seed=0, **options)
    buffer.add(numbered(0, len(errors)), errors)
    return buffer


def frequencies(buffer, draws=20_000):
    ids = np.concatenate([buffer.sample(1000).idx for _ in range(draws // 1000)])
    return np.bincount(ids)


def assert_sampled_in_proportion(buffer, priorities, draws=20_000):
    counts = frequencies(buffer, draws)
    priorities = np.asarray(priorities, np.float64)
    expected = draws * priorities / priorities.sum()
    assert counts.sum() == draws
    counts = np.pad(counts, (0, len(priorities) - len(counts)))
    assert (counts[expected == 0] == 0).all()
    some = expected > 0
    assert stats.chisquare(counts[some], expected[some]).pvalue > 1e-4


@pytest.mark.parametrize("alpha", [0.6, 1.0, 2.0])
def test_samples_in_proportion_to_priority(alpha):
    errors = np.array([0.0, 0.1, -0.5, 1.0, 2.0, -3.0])
    buffer = filled(errors, alpha=alpha, epsilon=0.05)
    assert_sampled_in_proportion(buffer, (np.abs(errors) + 0.05) ** alpha)


@pytest.mark.parametrize("num_added", [19, 20, 21, 47])  # capacity - 1, capacity, and past the seam
def test_samples_what_is_stored_and_nothing_else(num_added):
    rng = np.random.default_rng(0)
    errors = rng.normal(size=num_added)
    buffer = filled(errors, capacity=20)
    priorities = np.abs(errors) + 1e-4
    priorities[: num_added - len(buffer)] = 0
    assert_sampled_in_proportion(buffer, priorities)


@given(st.integers(1, 6), st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), st.data())
@settings(max_examples=40, deadline=None)
def test_weights_are_importance_weights_over_the_batch_maximum(capacity, sizes, data):
    alpha, beta = data.draw(st.floats(0.1, 2)), data.draw(st.floats(0.1, 2))
    buffer = PrioritizedReplayBuffer(capacity, alpha, beta, epsilon=0.1, random_seed=0)
    rng = np.random.default_rng(0)
    errors = rng.normal(size=sum(sizes))
    for k, size in enumerate(sizes):
        start = sum(sizes[:k])
        buffer.add(nested(start, size), errors[start : start + size])
    batch = buffer.sample(20)
    stored = np.arange(max(0, sum(sizes) - capacity), sum(sizes))
    probability = (np.abs(errors) + 0.1) ** alpha / ((np.abs(errors[stored]) + 0.1) ** alpha).sum()
    weights = (len(stored) * probability[batch.idx]) ** -beta
    weights /= weights.max()
    expected = joined([nested(k, 1) for k in batch.idx])
    np.testing.assert_allclose(batch.W, weights * expected.W, rtol=1e-4)
    batch.W = expected.W
    assert batch == with_idx(expected, batch.idx)
    assert batch.W.dtype == np.float32


def test_without_errors_a_transition_gets_the_largest_priority_so_far():  # F17
    buffer = PrioritizedReplayBuffer(8, epsilon=1e-9, random_seed=0)
    buffer.add(numbered(0, 1))
    buffer.add(numbered(1, 1), np.array([0.5]))
    buffer.add(numbered(2, 1))
    assert_sampled_in_proportion(buffer, [1, 0.5, 1])
    buffer.update(np.array([1]), np.array([-4.0]))
    buffer.add(numbered(3, 2))
    assert_sampled_in_proportion(buffer, [1, 4, 1, 4, 4])
    buffer.update(np.array([1, 3]), np.array([1.0, 1.0]))
    buffer.add(numbered(5, 1))
    assert_sampled_in_proportion(buffer, [1, 1, 1, 1, 4, 4])


def test_update_sets_priorities_by_insertion_number():
    buffer = filled(np.ones(5), capacity=3, epsilon=1e-9)
    buffer.update(np.array([3, 4]), np.array([-2.0, 5.0]))
    assert_sampled_in_proportion(buffer, [0, 0, 1, 2, 5])


def test_update_leaves_overwritten_slots_alone():
    buffer = filled(np.ones(3), epsilon=1e-9)
    batch = buffer.sample(3)
    buffer.add(numbered(3, 2), np.ones(2))
    buffer.update(np.array([0, 1, 2]), np.full(3, 100.0))
    assert_sampled_in_proportion(buffer, [0, 0, 100, 1, 1])
    buffer.add(numbered(5, 1), np.ones(1))
    buffer.update(batch.idx, np.full(3, 100.0))
    assert_sampled_in_proportion(buffer, [0, 0, 0, 1, 1, 1])


def test_update_with_one_array_element_warns_of_nothing():  # F16
    buffer = filled(np.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buffer.update(np.array([2]), np.array([0.5], np.float32))
        buffer.add(numbered(3, 1), np.array([0.5], np.float32))
        buffer.update(jnp.array([3]), jnp.array([0.5]))


@pytest.mark.parametrize(
    ("idx", "Adv", "error", "message"),
    [
        ([0, 1], [1.0], ValueError, r"Adv must .* shape \(2,\); got \(1,\)"),
        ([0], [[1.0]], ValueError, r"Adv must .* got \(1, 1\)"),
        ([[0]], [[1.0]], ValueError, "idx must have one axis"),
        (0, 1.0, ValueError, "idx must have one axis"),
        ([0.0], [1.0], TypeError, "idx must hold ints"),
        ([3], [1.0], ValueError, r"insertion numbers in \[0, 3\)"),
        ([-1], [1.0], ValueError, "insertion numbers"),
        ([0, 1], [1.0, np.nan], NonFiniteError, "Adv must be finite"),
        ([0], ["a"], TypeError, "Adv must hold real numbers"),
    ],
)
def test_an_update_that_does_not_fit_is_refused_and_changes_nothing(idx, Adv, error, message):
    buffer = filled([1.0, 2.0, 3.0], epsilon=1e-9)
    with pytest.raises(error, match=message):
        buffer.update(np.asarray(idx), np.asarray(Adv))
    assert_sampled_in_proportion(buffer, [1, 2, 3])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_errors_that_are_not_finite_are_refused_and_change_nothing(bad):  # F19
    buffer = filled([1.0, 2.0], capacity=2, epsilon=1e-9)
    with pytest.raises(NonFiniteError, match="Adv must be finite"):
        buffer.add(numbered(2, 2), np.array([1.0, bad]))
    with pytest.raises(ValueError, match="shape"):
        buffer.add(numbered(2, 2), np.ones(3))
    assert [single.idx[0] for single in buffer] == [0, 1]
    assert_sampled_in_proportion(buffer, [1, 2])


def test_a_priority_that_would_overflow_is_refused_and_changes_nothing():
    buffer = filled([1.0, 2.0], alpha=2.0, epsilon=1e-9)
    with pytest.raises(NonFiniteError, match="overflows"):
        buffer.add(numbered(2, 1), np.array([1e200]))
    with pytest.raises(NonFiniteError, match="overflows"):
        buffer.update(np.array([0]), np.array([1e200]))
    with pytest.raises(NonFiniteError, match="overflows"):
        buffer.alpha = 5000.0
    assert buffer.alpha == 2.0
    assert_sampled_in_proportion(buffer, [1, 4])


def test_a_priority_that_underflows_is_still_sampled():
    buffer = filled([0.0, 0.0, 0.0], alpha=500.0)
    assert_sampled_in_proportion(buffer, [1, 1, 1])


def test_a_batch_that_does_not_fit_changes_no_priorities():
    buffer = filled([1.0, 2.0], epsilon=1e-9)
    for Adv in (None, np.ones(1)):
        with pytest.raises(ValueError, match=r"\.A: expected int64"):
            buffer.add(numbered(2, 1, A=np.zeros(1)), Adv)
        with pytest.raises(TypeError, match="transition_batch"):
            buffer.add("batch", Adv)
    assert_sampled_in_proportion(buffer, [1, 2])


def test_alpha_is_what_was_set_however_small_the_change():  # F18
    errors = np.array([0.5, 2.0, 10.0])
    buffer = filled(errors, alpha=0.6, epsilon=1e-9)
    buffer.alpha = 0.601
    assert buffer.alpha == 0.601
    buffer.beta = 1.0
    batch = buffer.sample(64)
    weights = errors[batch.idx] ** -0.601
    np.testing.assert_allclose(batch.W / (batch.idx + 1), weights / weights.max(), rtol=1e-5)
    for alpha in (1e-12, 3.0):  # there and back loses nothing
        buffer.alpha = alpha
    assert_sampled_in_proportion(buffer, errors**3)


def test_beta_and_epsilon_take_effect_from_now_on():
    buffer = filled([1.0, 2.0], capacity=3, epsilon=1.0)
    buffer.epsilon = 3.0
    buffer.add(numbered(2, 1), np.array([4.0]))
    assert_sampled_in_proportion(buffer, [2, 3, 7])
    buffer.beta = 1e-12
    batch = buffer.sample(10)
    np.testing.assert_allclose(batch.W, batch.idx + 1)


@pytest.mark.parametrize("value", [0, -1.0, "1", None, True, np.nan, np.inf])
@pytest.mark.parametrize("name", ["alpha", "beta", "epsilon"])
def test_the_three_numbers_are_positive(name, value):
    with pytest.raises(TypeError, match=name):
        PrioritizedReplayBuffer(3, **{name: value})
    buffer = PrioritizedReplayBuffer(3)
    before = getattr(buffer, name)
    with pytest.raises(TypeError, match=name):
        setattr(buffer, name, value)
    assert getattr(buffer, name) == before


def test_integers_and_numpy_numbers_are_numbers():
    buffer = PrioritizedReplayBuffer(np.int64(3), alpha=1, beta=np.float32(0.5))
    buffer.alpha = np.int64(2)
    assert (buffer.alpha, buffer.beta, buffer.capacity) == (2, 0.5, 3)


def test_an_empty_buffer_cannot_be_sampled():
    buffer = PrioritizedReplayBuffer(3)
    with pytest.raises(RuntimeError, match="empty"):
        buffer.sample()
    buffer.add(numbered(0, 2))
    buffer.clear()
    with pytest.raises(InsufficientCacheError, match="empty"):
        buffer.sample()


def test_clear_only_empties():  # F18
    def sample(clears):
        buffer = PrioritizedReplayBuffer(10, random_seed=0)
        for _ in range(2):
            buffer.add(numbered(0, 10), np.ones(10))
            batch = buffer.sample(16)
            if clears:
                buffer.clear()
                assert list(buffer) == []
        return (batch.idx % 10).tolist()

    assert sample(clears=True) == sample(clears=False)
    buffer = filled(np.full(4, 100.0))
    buffer.clear()
    buffer.update(np.array([1]), np.array([5.0]))  # of before: overwritten
    buffer.add(numbered(0, 2))
    assert_sampled_in_proportion(buffer, [0, 0, 0, 0, 1, 1])


def test_iterates_in_the_order_of_slots():
    buffer = filled(np.ones(7), capacity=5)
    assert [single.idx[0] for single in buffer] == [5, 6, 2, 3, 4]


def test_many_single_transitions_between_samples_are_all_found():
    buffer = PrioritizedReplayBuffer(4000, epsilon=1e-9, random_seed=0)
    single, two = numbered(0, 1), np.array([2.0])
    for k in range(5000):
        buffer.add(single, None if k % 1000 else two)
    ids = np.unique(np.concatenate([buffer.sample(5000).idx for _ in range(20)]))
    np.testing.assert_array_equal(ids, range(1000, 5000))


def test_priorities_do_not_drift_over_many_updates():  # pitfall 22
    rng = np.random.default_rng(0)
    buffer = filled(np.ones(50), epsilon=1e-9)
    for _ in range(500):
        buffer.update(rng.integers(50, size=20), 10.0 ** rng.uniform(-8, 8, size=20))
    errors = np.zeros(50)
    errors[7] = 1.0
    buffer.update(np.arange(50), errors)
    assert set(buffer.sample(1000).idx) == {7}


@pytest.mark.parametrize("num_added", [0, 4, 25])
def test_a_snapshot_samples_on_bit_for_bit(num_added):
    buffer = PrioritizedReplayBuffer(10, alpha=0.6, beta=0.4, epsilon=0.01, random_seed=0)
    if num_added:
        buffer.add(nested(0, num_added), np.linspace(-1, 3, num_added))
        buffer.update(buffer.sample(3).idx, np.full(3, 7.0))
    state = buffer.state_dict()
    state["scalars"] = json.loads(json.dumps(state["scalars"]))
    again = PrioritizedReplayBuffer(10, random_seed=1)
    again.load_state_dict(state, example=nested(0, 1))
    assert (again.alpha, again.beta, again.epsilon) == (0.6, 0.4, 0.01)
    for each in (buffer, again):
        each.add(nested(num_added, 2))
    for _ in range(5):
        one, two = buffer.sample(8), again.sample(8)
        assert one == two
        assert one.W.tobytes() == two.W.tobytes()
        for each in (buffer, again):
            each.update(one.idx, one.Rn)
            each.add(nested(0, 3))


def test_a_snapshot_of_another_kind_is_refused_and_changes_nothing():
    buffer = filled([1.0, 2.0], epsilon=1e-9)
    state = buffer.state_dict()
    state["scalars"]["kind"] = "SimpleReplayBuffer"
    with pytest.raises(ValueError, match="snapshot is of a SimpleReplayBuffer"):
        buffer.load_state_dict(state)
    for errors in (np.ones(1), np.array([1.0, np.nan]), np.array([0.0, 1.0])):
        state = filled([1.0, 5.0]).state_dict()
        state["arrays"]["errors"] = errors
        with pytest.raises(ValueError, match="errors"):
            buffer.load_state_dict(state)
    assert_sampled_in_proportion(buffer, [1, 2])


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda buffer: pickle.loads(pickle.dumps(buffer))])
def test_a_copied_buffer_goes_on_with_priorities_of_its_own(twin_of):
    buffer = PrioritizedReplayBuffer(8, random_seed=0)
    buffer.add(numbered(0, 4), Adv=np.ones(4))
    buffer.sample(4)
    twin = twin_of(buffer)
    twin.update(np.array([3]), np.array([997.0]))
    assert np.bincount(twin.sample(1000).idx, minlength=4)[3] > 950
    assert np.bincount(buffer.sample(1000).idx, minlength=4)[3] < 400


@pytest.mark.parametrize(
    "name, value, error",
    [("num_appended", 3.7, TypeError), ("num_appended", True, TypeError), ("largest_error", 0.5, ValueError)],
)
def test_refuses_a_snapshot_whose_numbers_cannot_be(name, value, error):
    buffer = PrioritizedReplayBuffer(4, random_seed=0)
    batch = numbered(0, 3)
    buffer.add(batch, np.array([1.0, 2.0, 3.0]))
    state = buffer.state_dict()
    before = buffer.state_dict()
    state["scalars"][name] = value
    with pytest.raises(error, match=name):
        buffer.load_state_dict(state)
    assert buffer.state_dict()["scalars"] == before["scalars"]
