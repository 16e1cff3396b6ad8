"""A replay that is filled again from its journal is the one that was lost."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triax.distributed.journal import ReplayJournal
from triax.distributed.replay_role import Replay

from .batches import NEEDS, numbered

CAPACITY = 16
STEPS = st.lists(st.one_of(st.integers(1, 20), st.lists(st.integers(0, 60), min_size=1, max_size=4)), max_size=15)


def assert_same_content(left, right):
    left, right = left.state_dict()["arrays"], right.state_dict()["arrays"]
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def filled_again(journal, base=None):
    replay = Replay(NEEDS, CAPACITY, seed=1, first_id=journal.first_id)
    entries = journal.entries[1:] if base else journal.entries
    replay.restore(base, numbered(0, 1), [entry.rows for entry in entries], journal.known_errors())
    return replay


def play(steps, replay, journal, added=0):
    """Chunks of that many rows, and errors of rows by number."""
    rng = np.random.default_rng(0)
    for step in steps:
        if isinstance(step, int):
            chunk = numbered(added, step), rng.uniform(0.1, 2.0, step)
            journal.add(chunk, step)
            replay.add(*chunk)
            added += step
        else:
            ids = np.unique([number for number in step if number < added]).astype(int)
            errors = rng.uniform(0.1, 2.0, len(ids))
            journal.set_errors(ids, errors)
            replay.set_errors(ids, errors)
    return added


@given(before=STEPS, after=STEPS)
def test_a_replay_filled_again_has_rows_and_errors_of_the_lost_one_and_goes_on_alike(before, after):
    lost, journal = Replay(NEEDS, CAPACITY, seed=1), ReplayJournal(CAPACITY)
    added = play(before, lost, journal)
    again = filled_again(journal)
    assert_same_content(lost, again)
    for replay in (lost, again):
        play(after, replay, ReplayJournal(CAPACITY), added)
    assert_same_content(lost, again)


@given(before=STEPS.filter(lambda steps: any(isinstance(step, int) for step in steps)), after=STEPS)
def test_so_has_one_of_a_run_that_was_resumed(before, after):
    first = Replay(NEEDS, CAPACITY, seed=1)
    play(before, first, ReplayJournal(CAPACITY))
    state, journal = first.state_dict(), ReplayJournal(CAPACITY)
    journal.add("base", len(first))
    resumed = Replay(NEEDS, CAPACITY, seed=1)
    resumed.restore(state, numbered(0, 1), [], journal.known_errors())
    play(after, resumed, journal, added=len(first))
    has_base = journal.entries[0].rows == "base"
    assert_same_content(resumed, filled_again(journal, state if has_base else None))


def test_it_keeps_no_more_than_it_must():
    journal = ReplayJournal(10)
    for number in range(100):
        journal.add(number, 4)
    assert [entry.rows for entry in journal.entries] == [97, 98, 99]
    assert (journal.total, journal.first_id) == (400, 388)


def test_an_error_of_an_overwritten_row_is_not_that_of_its_heir():
    journal = ReplayJournal(4)
    journal.add("a", 4)
    journal.set_errors(np.array([0, 3]), np.array([5.0, 6.0]))
    journal.add("b", 2)
    ids, errors = journal.known_errors()
    assert (ids.tolist(), errors.tolist()) == ([3], [6.0])
    journal.set_errors(np.array([1]), np.array([9.0]))
    assert journal.known_errors()[0].tolist() == [3]
