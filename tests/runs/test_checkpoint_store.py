import os
import shutil

import numpy as np
import pytest

from triax.runs import CheckpointStore


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints", keep=None)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the checkpoints of the steps 10, 200 and 3000."""
    store = CheckpointStore(tmp_path_factory.mktemp("saved"), keep=None)
    for step in (10, 200, 3000):
        store.save(step, {"a": np.full(2, step)}, {"best": step / 2})
    return store.directory


@pytest.fixture
def filled(store, saved):
    shutil.copytree(saved, store.directory)
    return store


def test_an_empty_store_has_no_steps_and_makes_no_folder(store):
    assert (store.steps(), store.latest_step()) == ([], None)
    assert not store.directory.exists()


def test_the_last_checkpoint_or_that_of_a_step_is_loaded(filled):
    like = {"a": np.zeros(2, int)}
    assert filled.steps() == [10, 200, 3000]
    assert filled.latest_step() == 3000
    tree, metadata = filled.load(like)
    np.testing.assert_array_equal(tree["a"], [3000, 3000])
    assert metadata == {"best": 1500.0, "step": 3000}
    assert filled.load(like, step=200).metadata == {"best": 100.0, "step": 200} == filled.load_metadata(200)
    assert names(filled.directory) == ["step_0000000010", "step_0000000200", "step_0000003000"]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_last_n_are_kept(filled, keep):
    store = CheckpointStore(filled.directory, keep)
    store.save(4000, {})
    assert store.steps() == [10, 200, 3000, 4000][-keep:]
    store.save(4000, {"again": 1})
    assert store.steps() == [10, 200, 3000, 4000][-keep:]
    assert store.load(like={"again": 0}).tree == {"again": 1}


def test_ten_digits_are_not_too_few(store):
    for step in (10**10, 3):
        store.save(step, {})
    assert store.steps() == [3, 10**10]


def test_missing_steps_are_named_with_those_there(filled, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected the checkpoint of step 7, found .* \[10, 200, 3000\]"):
        filled.load({}, step=7)
    with pytest.raises(FileNotFoundError, match=r"expected a checkpoint, found those of the steps \[\]"):
        CheckpointStore(tmp_path / "nothing").load({})


def test_later_ones_are_discarded_on_demand(filled):
    filled.discard_after(200)
    assert filled.steps() == [10, 200]


def test_other_files_are_left_alone(filled):
    (filled.directory / "notes.txt").write_text("mine")
    (filled.directory / "step_12").mkdir()
    CheckpointStore(filled.directory, keep=1).save(4000, {})
    assert names(filled.directory) == ["notes.txt", "step_0000004000", "step_12"]


def test_what_a_killed_process_left_is_no_checkpoint_and_goes_at_the_next_save(filled):
    shutil.copytree(filled.path(10), filled.directory / ".step_0000000020.tmp")
    shutil.copytree(filled.path(10), filled.directory / ".step_0000000005.removed")
    assert filled.steps() == [10, 200, 3000]
    filled.save(4000, {})
    assert names(filled.directory) == [f"step_{step:010d}" for step in (10, 200, 3000, 4000)]


def test_a_checkpoint_that_was_about_to_be_replaced_is_not_lost(filled):
    os.rename(filled.path(3000), filled.directory / ".step_0000003000.old")
    assert filled.latest_step() == 3000
    assert filled.load({"a": np.zeros(2, int)}).metadata["step"] == 3000
    filled.save(4000, {})
    assert names(filled.directory) == [f"step_{step:010d}" for step in (10, 200, 3000, 4000)]


def test_nonsense_is_refused(tmp_path):
    with pytest.raises(ValueError, match="keep must be at least 1, or None"):
        CheckpointStore(tmp_path, keep=0)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        CheckpointStore(tmp_path).path(-1)


def test_a_store_tells_whether_it_holds_exactly_a_tree(store):
    tree = {"a": np.array([0.0, np.nan]), "n": 3}
    store.save(7, tree)
    assert store.holds(7, {"a": np.array([0.0, np.nan]), "n": 3})
    others = (
        {"a": np.array([-0.0, np.nan]), "n": 3},
        {"a": np.array([0, np.nan], np.float32), "n": 3},
        {"a": tree["a"]},
    )
    assert not any(store.holds(7, other) for other in others)
    assert not store.holds(8, tree)
