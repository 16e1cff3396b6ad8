import json
import random
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from triax.core.errors import InsufficientCacheError
from triax.experience_replay import SimpleReplayBuffer
from triax.experience_replay.batch import check_replayable
from triax.reward_tracing import NStep, TransitionBatch

from .batches import joined, nested, numbered, with_idx

SIZES = st.lists(st.integers(0, 13), max_size=8)
MAKERS = st.sampled_from([numbered, nested])


@given(st.integers(1, 6), SIZES, MAKERS)
@settings(max_examples=50, deadline=None)
def test_holds_the_last_transitions_oldest_first(capacity, sizes, make):  # F12
    buffer, total = SimpleReplayBuffer(capacity), 0
    for size in sizes:
        buffer.add(make(total, size))
        total += size
        kept = range(max(0, total - capacity), total)
        assert len(buffer) == len(kept)
        assert bool(buffer) == bool(kept)
        found = list(buffer)
        assert found == [with_idx(make(k, 1), [k]) for k in kept]


@given(st.integers(1, 6), SIZES.filter(any), MAKERS, st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_samples_whole_transitions_without_replacement(capacity, sizes, make, seed):
    buffer = SimpleReplayBuffer(capacity, random_seed=seed)
    for k, size in enumerate(sizes):
        buffer.add(make(sum(sizes[:k]), size))
    batch = buffer.sample(len(buffer))
    first = sum(sizes) - len(buffer)
    assert sorted(batch.idx) == list(range(first, sum(sizes)))
    assert batch == with_idx(joined([make(k, 1) for k in batch.idx]), batch.idx)
    assert batch.idx.dtype == np.int64


@pytest.mark.parametrize("num_added", [49, 50, 51, 130])  # capacity - 1, capacity, and past the seam
def test_samples_uniformly(num_added):
    buffer = SimpleReplayBuffer(50, random_seed=0)
    buffer.add(numbered(0, num_added))
    ids = np.concatenate([buffer.sample(7).idx for _ in range(3000)])
    counts = np.bincount(ids - (num_added - len(buffer)), minlength=len(buffer))
    assert len(counts) == len(buffer)
    # Without replacement the counts vary less than independent ones: both tails are bounds.
    p_value = stats.chisquare(counts).pvalue
    assert 1e-4 < p_value < 1 - 1e-4


def test_the_positions_in_a_batch_are_alike():
    buffer = SimpleReplayBuffer(40, random_seed=0)
    buffer.add(numbered(0, 40))
    firsts = np.array([buffer.sample(20).idx[0] for _ in range(4000)])
    assert stats.chisquare(np.bincount(firsts, minlength=40)).pvalue > 1e-4


def test_batches_that_do_not_divide_the_capacity_wrap_around():
    buffer = SimpleReplayBuffer(10)
    for start in range(0, 28, 4):
        buffer.add(numbered(start, 4))
    assert [single.idx[0] for single in buffer] == list(range(18, 28))


def test_the_arguments_stay_as_they_were():  # F9
    buffer = SimpleReplayBuffer(10)
    batch = with_idx(numbered(3, 4), [9, 9, 9, 9])
    before = batch.copy(deep=True)
    idx = batch.idx
    buffer.add(batch)
    buffer.add(batch)
    assert batch == before
    assert batch.idx is idx
    assert [single.idx[0] for single in buffer] == list(range(8))


def test_stored_transitions_are_copies_and_samples_too():
    buffer = SimpleReplayBuffer(4)
    given_ = nested(0, 4)
    buffer.add(given_)
    jax.tree.map(lambda leaf: leaf.fill(0), given_)
    sample = buffer.sample(4)
    jax.tree.map(lambda leaf: leaf.fill(0), sample)
    assert joined(list(buffer)) == nested(0, 4)


def test_no_global_generator_is_touched(monkeypatch):  # F13
    before = np.random.get_state()[1].tolist()
    # beartype itself draws from `random`, so its state cannot be compared here.
    for module, name in [
        (random, "seed"),
        (random, "setstate"),
        (np.random, "seed"),
        (np.random, "set_state"),
    ]:
        monkeypatch.setattr(module, name, lambda *_, name=name: pytest.fail(f"called {name}"))
    buffer = SimpleReplayBuffer(10, random_seed=0)
    buffer.add(numbered(0, 10))
    buffer.sample(3)
    assert np.random.get_state()[1].tolist() == before


def test_a_seed_decides_what_is_sampled():
    def ids(seed):
        buffer = SimpleReplayBuffer(100, random_seed=seed)
        buffer.add(numbered(0, 100))
        return buffer.sample(10).idx.tolist()

    assert ids(0) == ids(0)
    assert ids(0) != ids(1)
    assert ids(None) != ids(None)


def test_asking_for_more_than_is_stored_says_both_numbers():  # F14
    buffer = SimpleReplayBuffer(10)
    for stored in (0, 5):
        with pytest.raises(InsufficientCacheError, match=rf"batch_size is 6, but only {stored}") as error:
            buffer.sample(6)
        assert isinstance(error.value, ValueError)
        buffer.add(numbered(0, 5))


@pytest.mark.parametrize("capacity", [0, -1, 2.0, "3", None, True])
def test_the_capacity_is_a_positive_int(capacity):  # F14
    with pytest.raises(TypeError, match="capacity"):
        SimpleReplayBuffer(capacity)


def test_the_batch_size_is_a_positive_int():
    buffer = SimpleReplayBuffer(np.int64(3))
    buffer.add(numbered(0, 3))
    assert buffer.sample(np.int32(2)).batch_size == 2
    for bad in (0, -1, 1.5, True):
        with pytest.raises(TypeError, match="batch_size"):
            buffer.sample(bad)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"S": np.zeros((2, 3), np.float32)}, ValueError, r"\.S: expected float32\[2\], got float32\[3\]"),
        ({"S": np.zeros((2, 2))}, ValueError, r"\.S: expected float32\[2\], got float64\[2\]"),
        ({"A": np.zeros(2, np.int32)}, ValueError, r"\.A: expected int64\[\], got int32\[\]"),
        ({"A_next": np.zeros(2, int)}, ValueError, r"\.A_next: not expected"),
        ({"S": (np.zeros((2, 2), np.float32),)}, ValueError, r"\.S\[0\]: not expected"),
        ({"W": None}, ValueError, r"\.W: missing"),
        ({"Rn": np.zeros(2)}, ValueError, r"\.Rn: expected float32\[\], got float64\[\]"),
        (
            {"logP": np.zeros(3, np.float32)},
            ValueError,
            r"logP must have the batch, 2, on axis 0; got shape \(3,\)",
        ),
        ({"idx": np.zeros(3, int)}, ValueError, r"idx must have the batch, 2, on axis 0"),
        ({"idx": None}, ValueError, r"\.idx: missing"),
        ({"extra_info": "text"}, ValueError, "extra_info must have the batch"),
        ({"S": np.array([None, None])}, TypeError, "S must be an array"),
    ],
)
@pytest.mark.parametrize("size", [2, 1])
def test_a_batch_that_does_not_fit_is_refused_by_name_and_changes_nothing(change, error, message, size):
    buffer = SimpleReplayBuffer(3)
    buffer.add(numbered(0, 4))
    before = list(buffer)
    batch = numbered(4, 2)
    for name, value in change.items():
        setattr(batch, name, value)
    if size == 1:  # the fast path
        batch = jax.tree.map(lambda leaf: leaf if isinstance(leaf, str) else leaf[: len(leaf) - 1], batch)
        message = message.replace("batch, 2,", "batch, 1,").replace("(3,", "(2,")
    with pytest.raises(error, match=message):
        buffer.add(batch)
    assert list(buffer) == before
    buffer.add(numbered(4, 1))
    assert [single.idx[0] for single in buffer] == [2, 3, 4]


@pytest.mark.parametrize("thing", [None, 3, (1, 2), {"S": np.zeros(2)}, np.zeros(3)])
@pytest.mark.parametrize("used", [False, True])
def test_only_batches_are_taken(thing, used):
    buffer = SimpleReplayBuffer(3)
    if used:
        buffer.add(numbered(0, 1))
    with pytest.raises(TypeError, match="transition_batch"):
        buffer.add(thing)
    assert len(buffer) == used


def test_says_what_a_batch_must_have():
    with pytest.raises(TypeError, match=r"must have batch_size, idx and W.* got int without"):
        check_replayable("SimpleReplayBuffer", 3)


def test_a_bad_first_batch_decides_nothing():
    buffer = SimpleReplayBuffer(3)
    bad = nested(0, 2)
    bad.In = np.zeros(5)
    with pytest.raises(ValueError, match="In must have the batch"):
        buffer.add(bad)
    buffer.add(numbered(0, 2))
    assert len(buffer) == 2


def test_takes_device_arrays_and_gives_numpy():
    buffer = SimpleReplayBuffer(4, random_seed=0)
    for single in numbered(0, 3).to_singles():
        batch = TransitionBatch(*jax.tree.map(jnp.asarray, single))
        batch.A = single.A  # int64
        buffer.add(batch)
    sample = buffer.sample(2)
    assert all(type(leaf) is np.ndarray for leaf in jax.tree.leaves(sample))
    assert sample == with_idx(joined([numbered(k, 1) for k in sample.idx]), sample.idx)


def test_clear_only_empties():
    def ids(clears):
        buffer = SimpleReplayBuffer(10, random_seed=0)
        for _ in range(2):
            buffer.add(numbered(0, 10))
            sampled = buffer.sample(5).idx % 10
            if clears:
                buffer.clear()
                assert len(buffer) == 0
                assert not buffer
                assert list(buffer) == []
        return sampled.tolist()

    assert ids(clears=True) == ids(clears=False)


def test_adding_while_iterating_is_refused():
    buffer = SimpleReplayBuffer(10)
    buffer.add(numbered(0, 3))
    with pytest.raises(RuntimeError, match="while iterating"):
        for single in buffer:
            buffer.add(single)


def test_adding_costs_the_same_however_much_is_stored():  # F12
    def seconds_per_add(capacity):
        buffer = SimpleReplayBuffer(capacity)
        buffer.add(numbered(0, capacity))
        single = numbered(0, 1)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(20):
                buffer.add(single)
            times.append(time.perf_counter() - start)
        return min(times)

    assert seconds_per_add(200_000) < 5 * seconds_per_add(20)


def test_takes_what_tracers_emit_and_what_buffers_sample():
    tracer, buffer, other = NStep(2, 0.9), SimpleReplayBuffer(10), SimpleReplayBuffer(10)
    for t in range(5):
        tracer.add(t, 0, 1.0, t == 4)
        if t < 4 and tracer:
            buffer.add(tracer.pop())
    buffer.add(tracer.flush())
    other.add(next(iter(buffer)))
    other.add(buffer.sample(4))
    assert (len(buffer), len(other)) == (5, 5)


@pytest.mark.parametrize("num_added", [0, 3, 25])
@pytest.mark.parametrize("used_before", [False, True])
def test_a_snapshot_samples_on_bit_for_bit(num_added, used_before):
    buffer = SimpleReplayBuffer(10, random_seed=0)
    if num_added:
        buffer.add(nested(0, num_added))
        buffer.sample(2)
    state = buffer.state_dict()
    scalars = json.loads(json.dumps(state["scalars"]))
    assert all(type(array) is np.ndarray for array in state["arrays"].values())
    again = SimpleReplayBuffer(10, random_seed=1)
    if used_before:
        again.add(nested(100, 7))
    again.load_state_dict({"scalars": scalars, "arrays": state["arrays"]}, example=nested(50, 1))
    for each in (buffer, again):
        each.add(nested(num_added, 5))
    assert list(again) == list(buffer)
    for _ in range(3):
        one, two = buffer.sample(3), again.sample(3)
        assert one == two
        assert jax.tree.map(lambda leaf: leaf.tobytes(), one) == jax.tree.map(lambda leaf: leaf.tobytes(), two)


def test_a_snapshot_is_a_copy():
    buffer = SimpleReplayBuffer(3)
    buffer.add(numbered(0, 3))
    state = buffer.state_dict()
    buffer.add(numbered(3, 3))
    np.testing.assert_array_equal(state["arrays"]["rows/Rn"], [0, 1, 2])


def test_a_snapshot_that_does_not_fit_is_refused_and_changes_nothing():
    buffer = SimpleReplayBuffer(3, random_seed=0)
    buffer.add(numbered(0, 3))
    snapshot = buffer.state_dict()
    other = SimpleReplayBuffer(5, random_seed=0)
    other.add(nested(0, 2))
    before = list(other)
    with pytest.raises(ValueError, match=r"(?s)a row.*S/frames/0.*missing"):
        other.load_state_dict(snapshot)
    large = SimpleReplayBuffer(9)
    large.add(numbered(0, 9))
    with pytest.raises(ValueError, match=r"snapshot holds \[9\] of 9 rows.* capacity is 3"):
        buffer.load_state_dict(large.state_dict())
    with pytest.raises(ValueError, match="pass example"):
        SimpleReplayBuffer(3).load_state_dict(snapshot)
    assert list(other) == before
    assert joined(list(buffer)) == numbered(0, 3)
