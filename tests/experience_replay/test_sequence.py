import dataclasses
import json

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from triax.core.errors import InsufficientCacheError
from triax.experience_replay import SequenceReplayBuffer
from triax.reward_tracing import Trajectory


def step_of(t, flags, weights=False):
    """Time step ``t``, with two bits of flags for each stream: whether it terminated, whether it was truncated."""
    flags = np.asarray(flags)
    label = 1000 * np.arange(len(flags)) + t
    return Trajectory(
        S=(label.astype(np.float32), np.stack([label, -label], axis=1)),
        A=label % 5,
        logP=-label / 7,
        R=label * 1.0,
        terminated=flags % 2 == 1,
        truncated=flags // 2 == 1,
        S_next=label + 1,
        carry={"h": np.stack([label, label], axis=1) * 0.5},
        W=label + 1.0 if weights else None,
    )


def filled(flags, sequence_length, capacity=None, **options):
    """A buffer with one step for each row of flags, ``[time, streams]``."""
    flags = np.asarray(flags)
    num_streams = flags.shape[1]
    buffer = SequenceReplayBuffer(capacity or flags.size, sequence_length, num_streams, random_seed=0)
    for t, row in enumerate(flags):
        buffer.add(step_of(t, row, **options))
    return buffer


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 30), st.booleans(), st.data())
@settings(max_examples=40, deadline=None)
def test_sequences_are_consecutive_steps_of_one_episode(length, streams, seed, weights, data):
    num_steps = data.draw(st.integers(length, 25))
    slots = data.draw(st.integers(length, 12))
    rng = np.random.default_rng(seed)
    flags = rng.integers(4, size=(num_steps, streams)) * (rng.random((num_steps, streams)) < 0.3)
    buffer = filled(flags, length, slots * streams, weights=weights)
    batch = buffer.sample(20)
    assert batch.R.shape == (length, 20)
    for b in range(20):
        stream, start = divmod(int(batch.R[0, b]), 1000)
        assert max(0, num_steps - slots) <= start <= num_steps - length
        t, over = start, False
        for k in range(length):
            expected = jax.tree.map(lambda leaf, s=stream: leaf[s], step_of(t, flags[t], weights))
            found = jax.tree.map(lambda leaf, k=k, b=b: leaf[k, b], dataclasses.replace(batch, carry=()))
            weight = 0.0 if over else expected.W if weights else 1.0
            jax.tree.map(np.testing.assert_array_equal, found, dataclasses.replace(expected, carry=(), W=weight))
            over = over or flags[t, stream] > 0
            t += not over
        np.testing.assert_array_equal(batch.carry["h"][b], [0.5 * (1000 * stream + start)] * 2)


@pytest.mark.parametrize("num_steps", [9, 10, 11, 27])  # around the capacity of 10 and past the seam
def test_every_start_is_equally_likely(num_steps):
    flags = np.zeros((num_steps, 2), int)
    flags[::4] = 1
    buffer = filled(flags, 3, capacity=20)
    first = np.concatenate([buffer.sample(500).R[0] for _ in range(20)]).astype(int)
    kept = min(num_steps, 10)
    starts = first % 1000 - (num_steps - kept) + (kept - 2) * (first // 1000)
    counts = np.bincount(starts, minlength=2 * (kept - 2))
    assert len(counts) == 2 * (kept - 2)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_streams_of_one_step_episodes_are_all_padding_but_the_first():
    buffer = filled(np.ones((6, 1), int), 3)
    batch = buffer.sample(50)
    np.testing.assert_array_equal(batch.W, np.repeat([[1.0], [0.0], [0.0]], 50, axis=1))
    np.testing.assert_array_equal(batch.R, np.repeat(batch.R[:1], 3, axis=0))


def test_is_too_short_to_sample_until_a_sequence_is_stored():
    buffer = filled(np.zeros((2, 1), int), 3, capacity=5)
    with pytest.raises(InsufficientCacheError, match="sequence_length is 3, but only 2"):
        buffer.sample(1)
    buffer.add(step_of(2, [0]))
    np.testing.assert_array_equal(buffer.sample(1).R[:, 0], [0, 1, 2])


def test_counts_the_steps_of_all_streams():
    buffer = filled(np.zeros((4, 3), int), 2, capacity=11)
    assert (buffer.capacity, len(buffer)) == (9, 9)
    steps = list(buffer)
    assert len(steps) == 3
    jax.tree.map(np.testing.assert_array_equal, steps[0], step_of(1, [0, 0, 0]))
    buffer.clear()
    assert len(buffer) == 0
    assert not buffer


def test_samples_are_copies():
    buffer = filled(np.zeros((4, 2), int), 2)
    jax.tree.map(lambda leaf: leaf.fill(0), buffer.sample(30))
    jax.tree.map(np.testing.assert_array_equal, list(buffer)[1], step_of(1, [0, 0]))


@pytest.mark.parametrize(
    ("numbers", "error", "message"),
    [
        ((0, 1, 1), TypeError, "capacity"),
        ((5, 0, 1), TypeError, "sequence_length"),
        ((5, 1, 0), TypeError, "num_streams"),
        ((5, 2, 3), ValueError, "at least sequence_length \\* num_streams, 6; got 5"),
    ],
)
def test_refuses_bad_numbers(numbers, error, message):
    with pytest.raises(error, match=message):
        SequenceReplayBuffer(*numbers)


def test_refuses_steps_that_do_not_fit_and_changes_nothing():
    buffer = SequenceReplayBuffer(6, 1, num_streams=2)
    with pytest.raises(ValueError, match=r"must have the batch, 2, on axis 0; got shape \(3"):
        buffer.add(step_of(0, [0, 0, 0]))
    with pytest.raises(TypeError, match="step must be a dataclass with terminated"):
        buffer.add({"S": np.zeros(2)})
    assert len(buffer) == 0
    buffer.add(step_of(0, [0, 0]))
    with pytest.raises(ValueError, match=r"\.W: not expected"):
        buffer.add(step_of(1, [0, 0], weights=True))
    with pytest.raises(ValueError, match=r"\.R: expected float64\[2\], got float64\[3\]"):
        buffer.add(step_of(1, [0, 0, 0]))
    with pytest.raises(TypeError, match="step must be a dataclass"):
        buffer.add(3)
    assert len(buffer) == 2


def test_a_snapshot_samples_on_bit_for_bit():
    flags = np.random.default_rng(0).integers(4, size=(13, 2))
    buffer = filled(flags, 3, capacity=16)
    buffer.sample(2)
    state = buffer.state_dict()
    state["scalars"] = json.loads(json.dumps(state["scalars"]))
    again = SequenceReplayBuffer(16, 3, num_streams=2)
    again.load_state_dict(state, example=step_of(0, [0, 0]))
    for each in (buffer, again):
        each.add(step_of(13, [0, 0]))
    for _ in range(3):
        jax.tree.map(np.testing.assert_array_equal, buffer.sample(5), again.sample(5))


def test_a_whole_trajectory_is_refused_with_the_way_to_add_it():
    buffer = SequenceReplayBuffer(20, 2, num_streams=2)
    flags = np.zeros((4, 2), bool)
    trajectory = Trajectory(np.zeros((4, 2, 3)), flags * 1, flags * 0.0, flags * 1.0, flags, flags, np.zeros((4, 2, 3)))
    with pytest.raises(ValueError, match=r"a step of all 2 streams .*got \[4, 2\].*step by step"):
        buffer.add(trajectory)
    carries = np.arange(8.0).reshape(4, 2, 1)
    for t in range(4):  # as the message says
        buffer.add(jax.tree.map(lambda leaf, t=t: leaf[t], dataclasses.replace(trajectory, carry=carries)))
    assert len(buffer) == 8
