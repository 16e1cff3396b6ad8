"""Buffers print how full they are and what they hold, and refuse mistyped attributes."""

import copy

import pytest

from triax.experience_replay import PrioritizedReplayBuffer, SequenceReplayBuffer, SimpleReplayBuffer

from .batches import numbered


def test_a_buffer_prints_how_full_it_is_and_what_a_row_is():
    buffer = SimpleReplayBuffer(1000)
    assert repr(buffer) == "SimpleReplayBuffer(0 of 1,000, empty)"
    buffer.add(numbered(0, 3))
    rows = "S float32[2], A int64[], logP float32[], Rn float32[], and 3 more"
    assert repr(buffer) == f"SimpleReplayBuffer(3 of 1,000, {rows})"


def test_a_buffer_prints_its_coefficients():
    assert "alpha=0.6, beta=1, epsilon=0.0001" in repr(PrioritizedReplayBuffer(8, alpha=0.6))
    assert "sequence_length=2, num_streams=3" in repr(SequenceReplayBuffer(30, 2, 3))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SimpleReplayBuffer(8), "capacty"),
        (lambda: PrioritizedReplayBuffer(8), "bata"),
        (lambda: SequenceReplayBuffer(8, 2), "sequence_length"),
        (lambda: SimpleReplayBuffer(8), "capacity"),
    ],
)
def test_attributes_that_are_mistyped_or_fixed_are_refused(make, name):
    with pytest.raises(AttributeError, match=name):
        setattr(make(), name, 4)


@pytest.mark.parametrize("seed", [1.5, True, -1])
def test_a_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises((TypeError, ValueError)):
        SimpleReplayBuffer(8, random_seed=seed)


@pytest.mark.parametrize("make", [SimpleReplayBuffer, PrioritizedReplayBuffer])
def test_a_copy_holds_transitions_of_its_own(make):
    buffer = make(8, random_seed=0)
    buffer.add(numbered(0, 3))
    twin = copy.copy(buffer)
    assert list(twin) == list(buffer)
    twin.add(numbered(3, 2))
    assert (len(buffer), len(twin)) == (3, 5)
    assert list(buffer) == list(twin)[:3]
