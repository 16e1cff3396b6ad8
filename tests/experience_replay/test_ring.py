"""Images in the ring: stacked frames as a wrapper gives them, through a tracer, past the seam."""

from collections import deque

import numpy as np
import pytest

from triax.experience_replay import PrioritizedReplayBuffer, SimpleReplayBuffer
from triax.experience_replay.ring import Ring
from triax.reward_tracing import NStep, TransitionBatch

SHAPE, STACK = (64, 64), 4


def stacked_episodes(num_episodes, length):
    """Tuples of the last four frames; the first frame of an episode is repeated. Every frame is another."""
    count = 0
    for _ in range(num_episodes):
        frames = deque(maxlen=STACK)
        observations = []
        for _ in range(length + 1):
            frame = np.full(SHAPE, count % 251, np.uint8)
            frame[0, 0] = count // 251
            frames.extend([frame] * (1 if frames else STACK))
            observations.append(tuple(frames))
            count += 1
        yield observations


def traced(num_episodes, length, with_s_next, n=1):
    tracer = NStep(n, 0.9)
    for observations in stacked_episodes(num_episodes, length):
        for t in range(length):
            last = t == length - 1
            s_next = observations[t + 1] if with_s_next or last else None
            tracer.add(observations[t], t, 1.0, False, truncated=last, s_next=s_next)
            while tracer:
                yield tracer.pop()


@pytest.mark.parametrize("with_s_next", [True, False])
@pytest.mark.parametrize("n", [1, 3])
def test_each_frame_is_stored_once(with_s_next, n):
    ring = Ring("ring", 100, id_leaf="idx")
    for single in traced(3, 10, with_s_next, n):
        ring.append(single, 1)
    assert ring.size == 30
    assert ring.num_frames == 3 * 11


@pytest.mark.parametrize("capacity", [7, 10, 100])
@pytest.mark.parametrize("at_once", [False, True])
def test_stacked_frames_come_out_as_they_went_in(capacity, at_once):
    buffer = SimpleReplayBuffer(capacity, random_seed=0)
    singles = list(traced(3, 10, True))
    if at_once:
        tracer = NStep(1, 0.9)
        for observations in stacked_episodes(3, 10):
            for t in range(10):
                tracer.add(observations[t], t, 1.0, False, truncated=t == 9, s_next=observations[t + 1])
            buffer.add(tracer.flush())
    else:
        for single in singles:
            buffer.add(single)
    for batch in (*buffer, buffer.sample(5), buffer.sample(7)):
        for name in ("S", "S_next"):
            for j in range(STACK):
                expected = np.concatenate([getattr(singles[k], name)[j] for k in batch.idx])
                np.testing.assert_array_equal(getattr(batch, name)[j], expected)


def test_frames_of_overwritten_transitions_make_room():
    ring = Ring("ring", 5, id_leaf="idx")
    for single in traced(6, 10, True):
        ring.append(single, 1)
        assert ring.num_frames <= 5 + 2 * STACK
    (store,) = ring._distinct_stores()
    assert store.nbytes < 100 * 64 * 64


def test_clearing_forgets_all_frames():
    buffer = SimpleReplayBuffer(5)
    for single in traced(1, 8, True):
        buffer.add(single)
    buffer.clear()
    assert buffer._ring.num_frames == 0
    for single in traced(1, 8, True):
        buffer.add(single)
    assert buffer._ring.num_frames == 5 + STACK


def test_small_rows_are_not_shared():
    ring = Ring("ring", 5, id_leaf="idx")
    ring.append(TransitionBatch.from_single(np.zeros(500), 0, 0.0, 0.0, False, 0.9, np.zeros(500)), 1)
    assert ring.num_frames == 0


@pytest.mark.parametrize("Buffer", [SimpleReplayBuffer, PrioritizedReplayBuffer])
@pytest.mark.parametrize("num_added", [0, 6, 25])
def test_a_snapshot_holds_each_frame_once_and_samples_on(Buffer, num_added):
    buffer, again = Buffer(10, random_seed=0), Buffer(10, random_seed=1)
    singles = list(traced(3, 10, True))
    for single in singles[:num_added]:
        buffer.add(single)
    if not num_added:
        buffer.add(singles[0])
        buffer.clear()
    state = buffer.state_dict()
    assert len(state["arrays"]["frames/0"]) == buffer._ring.num_frames
    again.load_state_dict(state, example=singles[0])
    for each in (buffer, again):
        for single in singles[25:]:
            each.add(single)
    assert again._ring.num_frames == buffer._ring.num_frames
    for _ in range(3):
        assert buffer.sample(4) == again.sample(4)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rows/S/0", np.arange(5), "numbers of .* frames"),
        ("rows/S/0", np.zeros(6), "expected int64"),
        ("frames/0", np.zeros((9, 3, 3), np.uint8), "frames/0"),
        ("rows/A", np.zeros(4, int), "holds"),
    ],
)
def test_a_snapshot_with_odd_frames_is_refused_and_changes_nothing(name, value, message):
    buffer = SimpleReplayBuffer(10)
    for single in traced(1, 5, True):
        buffer.add(single)
    before = list(buffer)
    state = buffer.state_dict()
    state["arrays"][name] = value + 7 if message.startswith("numbers") else value
    with pytest.raises(ValueError, match=message):
        buffer.load_state_dict(state)
    assert list(buffer) == before
