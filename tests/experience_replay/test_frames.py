from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.experience_replay.frames import FrameStore


def frame(value):
    return np.full((2, 3), value, np.uint8)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=60))
@settings(max_examples=50, deadline=None)
def test_holds_each_frame_in_use_once(operations):
    store, uses, numbers = FrameStore((2, 3), np.dtype(np.uint8), 2), Counter(), {}
    for puts, value in operations:
        if puts:
            (number,) = store.put(frame(value)[None])
            assert uses[value] == 0 or numbers[value] == number
            uses[value] += 1
            numbers[value] = number
        elif uses[value]:
            store.release(np.array([numbers[value]]))
            uses[value] -= 1
        alive = [value for value, count in uses.items() if count]
        assert len(store) == len(alive)
        assert len({numbers[value] for value in alive}) == len(alive)
        for value in alive:
            np.testing.assert_array_equal(store.take(np.array([numbers[value]])), frame(value)[None])


def test_grows_and_keeps_what_it_holds():
    store = FrameStore((2, 3), np.dtype(np.uint8), 1)
    numbers = store.put(np.stack([frame(value) for value in range(200)]))
    np.testing.assert_array_equal(store.take(numbers)[:, 0, 0], range(200))
    assert len(store) == 200


def test_reuses_the_place_of_a_frame_without_uses():
    store = FrameStore((2, 3), np.dtype(np.uint8), 4)
    for value in range(250):
        numbers = store.put(np.stack([frame(value), frame(value + 1)]))
        assert numbers.max() < 4
        store.release(numbers)
    assert len(store) == 0


def test_tells_frames_apart_whose_checksums_agree(monkeypatch):
    monkeypatch.setattr("triax.experience_replay.frames.zlib.crc32", lambda content: 0)
    store = FrameStore((2, 3), np.dtype(np.uint8), 4)
    numbers = store.put(np.stack([frame(1), frame(2), frame(1)]))
    assert numbers[0] == numbers[2] != numbers[1]
    store.release(numbers[:1])
    np.testing.assert_array_equal(store.take(numbers[1:])[:, 0, 0], [2, 1])
    store.release(numbers[2:])
    assert len(store) == 1


@pytest.mark.parametrize("pair", [(0.0, -0.0), (np.nan, 1.0)])
def test_keeps_bits_not_values(pair):
    store = FrameStore((2,), np.dtype(np.float32), 4)
    frames = np.array([pair, pair[::-1], pair], np.float32)
    numbers = store.put(frames)
    assert len(store) == 2
    assert store.take(numbers).tobytes() == frames.tobytes()


def test_negative_numbers_are_no_frames():
    store = FrameStore((2, 3), np.dtype(np.uint8), 4)
    numbers = store.put(frame(0)[None])
    store.release(np.array([-1, -1]))
    assert len(store) == 1
    np.testing.assert_array_equal(store.take(numbers), frame(0)[None])
