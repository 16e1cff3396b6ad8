import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from triax.runs import Run, save_checkpoint


@dataclasses.dataclass(frozen=True)
class Config:
    steps: int = 100
    gamma: float = 0.9


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_run_leaves_all_its_files(tmp_path):
    path = tmp_path / "runs" / "first"
    with Run.create(path, Config(steps=7)) as run:
        for step in range(1, 8):
            run.log(step, {"episode/return": jnp.float32(step)})
        run.checkpoints.save(7, {"a": np.arange(3)})
        run.write_learning_curve(title="first")
    assert names(path) == ["checkpoints", "config.json", "learning-curve.png", "metrics.jsonl", "tensorboard"]

    run = Run.open(path)
    assert run.load_config(Config) == Config(steps=7)
    assert [row["episode/return"] for row in run.read_metrics().rows] == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(run.checkpoints.load({"a": np.zeros(3, int)}).tree["a"], [0, 1, 2])


def test_a_folder_that_is_not_empty_is_refused_and_untouched(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"is not empty: it holds notes\.txt\. .*overwrite=True"):
        Run.create(tmp_path, Config())
    assert names(tmp_path) == ["notes.txt"]
    with pytest.raises(FileExistsError, match="is a file"):
        Run.create(tmp_path / "notes.txt", Config(), overwrite=True)


def test_an_empty_folder_is_taken(tmp_path):
    Run.create(tmp_path, Config()).close()
    assert names(tmp_path) == ["config.json", "metrics.jsonl"]


def test_overwrite_removes_the_earlier_run_and_nothing_else(tmp_path):
    with Run.create(tmp_path, Config(steps=1)) as run:
        run.log(1, {"episode/return": 1.0})
        run.checkpoints.save(1, {})
        run.write_learning_curve()
    (tmp_path / "notes.txt").write_text("mine")
    with Run.create(tmp_path, Config(steps=2), overwrite=True) as run:
        run.log(5, {"a": 2.0})
    assert names(tmp_path) == ["config.json", "metrics.jsonl", "notes.txt", "tensorboard"]
    assert run.load_config(Config) == Config(steps=2)
    assert [row["step"] for row in run.read_metrics().rows] == [5]
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1


def test_a_config_that_is_refused_leaves_everything_as_it_is(tmp_path):
    with Run.create(tmp_path / "a", Config()) as run:
        run.log(1, {"a": 1.0})
    for path in (tmp_path / "a", tmp_path / "b"):
        with pytest.raises(TypeError, match="expected an instance of a dataclass"):
            Run.create(path, {"steps": 1}, overwrite=True)
    assert names(tmp_path) == ["a"]
    assert len(Run.open(tmp_path / "a").read_metrics().rows) == 1


def test_resuming_takes_the_future_anew(tmp_path):
    with Run.create(tmp_path, Config(), keep_checkpoints=None) as run:
        for step in (10, 20, 30):
            run.log(step, {"a": 1.0})
            run.checkpoints.save(step, {})
    with Run.resume(tmp_path, 20) as run:
        assert run.checkpoints.steps() == [10, 20]
        run.log(25, {"a": 2.0})
    log = Run.open(tmp_path).read_metrics()
    assert [(row["step"], row["a"]) for row in log.rows] == [(10, 1.0), (20, 1.0), (25, 2.0)]
    assert log.superseded_rows == 1
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("a")] == [10, 20, 25]


def test_a_run_that_was_opened_is_read_only(tmp_path):
    Run.create(tmp_path, Config()).close()
    with pytest.raises(ValueError, match="open for reading only"):
        Run.open(tmp_path).log(1, {"a": 1.0})


def test_where_there_is_no_run_this_is_said(tmp_path):
    save_checkpoint(tmp_path / "checkpoints" / "step_0000000001", {})
    for begin in (Run.open, lambda path: Run.resume(path, 1)):
        with pytest.raises(FileNotFoundError, match=r"holds no run: expected a config\.json there"):
            begin(tmp_path)
    assert names(tmp_path) == ["checkpoints"]


def test_tensorboard_can_be_left_out(tmp_path):
    with Run.create(tmp_path, Config(), tensorboard=False) as run:
        run.log(1, {"a": 1.0})
    assert names(tmp_path) == ["config.json", "metrics.jsonl"]
    assert json.loads((tmp_path / "metrics.jsonl").read_text())["a"] == 1.0
