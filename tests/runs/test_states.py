import numpy as np
import pytest

from triax.core.leaves import named_leaves, restore_tree
from triax.runs import CheckpointStore, CorruptCheckpointError, Resumable, SavingRhythm, load_last_state, save_state


class Walk:
    """A random walk that grows: what it is like is not known beforehand."""

    def __init__(self, seed=0):
        self.generator, self.path, self.tree = np.random.default_rng(seed), np.zeros(1), {"a": np.zeros(2)}

    def go(self, steps):
        self.path = np.concatenate([self.path, self.path[-1] + self.generator.normal(size=steps).cumsum()])
        self.tree["a"] += self.path[-1]

    def state_dict(self):
        arrays = {"path": self.path, **named_leaves(self.tree)}
        return {"scalars": {"generator": self.generator.bit_generator.state}, "arrays": arrays}

    def load_state_dict(self, state):
        arrays = dict(state["arrays"])
        self.path, self.tree = arrays.pop("path"), restore_tree(self.tree, arrays)
        self.generator.bit_generator.state = state["scalars"]["generator"]


def test_what_loads_the_last_state_goes_on_as_the_other(tmp_path):
    store, walk, other = CheckpointStore(tmp_path, keep=2), Walk(), Walk(1)
    assert isinstance(walk, Resumable)
    for step in (3, 6, 9):
        walk.go(3)
        save_state(store, step, walk)
    assert store.steps() == [6, 9]
    loaded = load_last_state(store, skipped=lambda error: pytest.fail(str(error)))
    assert loaded is not None
    step, state = loaded
    other.load_state_dict(state)
    assert step == 9
    walk.go(5)
    other.go(5)
    np.testing.assert_array_equal(walk.path, other.path)
    np.testing.assert_array_equal(walk.tree["a"], other.tree["a"])


def test_a_damaged_state_is_left_out_and_told_unless_it_is_the_only_one(tmp_path):
    store, told = CheckpointStore(tmp_path, keep=2), []
    assert load_last_state(store, told.append) is None
    for step in (1, 2):
        save_state(store, step, Walk())
    (store.path(2) / "checkpoint.json").write_text("{")
    loaded = load_last_state(store, told.append)
    assert loaded is not None and loaded[0] == 1
    assert [str(store.path(2)) in str(error) for error in told] == [True]
    (store.path(1) / "checkpoint.json").unlink()
    with pytest.raises(CorruptCheckpointError):
        load_last_state(store, told.append)


@pytest.mark.parametrize(("every", "writing", "share"), [(10.0, 0.01, None), (0.5, 1.0, 0.02), (0.0, 0.1, 0.02)])
def test_states_are_saved_every_so_often_and_take_a_small_share_of_the_time(every, writing, share):
    now, saved = 0.0, []

    def save():
        nonlocal now
        now += writing
        saved.append(now)

    rhythm = SavingRhythm(every, clock=lambda: now)
    while now < 1000:
        now += 0.1
        if rhythm.is_due():
            rhythm.run(save)
    gaps = np.diff(saved)
    assert gaps.min() >= every
    if share is None:
        assert gaps.max() <= every + writing + 0.2
    else:
        assert share / 1.3 <= len(saved) * writing / 1000 <= share
