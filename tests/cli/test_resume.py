"""``triax resume`` goes on as if nothing had happened."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from triax.agents import DQN
from triax.runs import Run, load_state
from triax.runs.lock import FolderLock

from .running import QUICK, run

SCRIPT = Path(__file__).with_name("killable_run.py")
TRAIN = ["train", "dqn", "CartPole-v1", "--seed", "4", *QUICK, "--checkpoint-every", "0"]
TRAIN += ["--prioritized", "--n-step", "3", "--learning-rate", "0.01"]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "unbroken"
    assert run(*TRAIN, "--run-dir", path) == 0
    return path


@pytest.fixture
def copied(unbroken, tmp_path):
    return Path(shutil.copytree(unbroken, tmp_path / "copied"))


def killed(where, number, *arguments):
    process = subprocess.run([sys.executable, SCRIPT, where, str(number), *map(str, arguments)], capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()


def assert_same_run(found, expected):
    """Final weights, metrics and evaluations, bit for bit."""
    first, second = Run.open(found), Run.open(expected)
    (step, arrays), (other_step, others) = (
        (opened.checkpoints.latest_step(), opened.checkpoints.load_arrays().tree) for opened in (first, second)
    )
    assert step == other_step
    assert arrays.keys() == others.keys()
    for path, array in arrays.items():
        assert array.tobytes() == others[path].tobytes(), path
    rows, other_rows = (
        [{name: value for name, value in row.items() if name != "time"} for row in opened.read_metrics().rows]
        for opened in (first, second)
    )
    assert rows == other_rows
    assert first.best.latest_step() == second.best.latest_step()


def test_a_run_killed_in_a_step_and_again_while_writing_ends_as_an_unbroken_one(tmp_path, unbroken, capsys):
    path = tmp_path / "broken"
    killed("in-step", 250, *TRAIN, "--run-dir", path)
    first = Run.open(path)
    assert first.record.state == "unfinished"
    assert 0 < (before := first.states.latest_step()) < 250
    assert run("evaluate", path, "--last", "--episodes", 1) == 0
    assert f"weights of step {before}:" in capsys.readouterr().out
    killed("while-writing", 5, "resume", path)
    second = Run.open(path)
    assert list((path / "states").glob(".*.tmp"))  # half-written
    assert before < (start := second.states.latest_step()) < 600
    assert run("resume", path) == 0
    assert f"goes on from step {start} to 600" in capsys.readouterr().out
    assert_same_run(path, unbroken)
    assert np.all(np.diff(second.read_metrics().series("episode/return")[0]) > 0)
    assert second.read_metrics().superseded_rows > 0
    record = second.record
    assert (record.state, record.step, len(record.sessions)) == ("finished", 600, 3)
    assert [session.from_step for session in record.sessions] == sorted({s.from_step for s in record.sessions})
    assert not list((path / "states").glob(".*.tmp"))


def test_a_run_stopped_by_ctrl_c_ends_as_an_unbroken_one(tmp_path, unbroken, monkeypatch, capsys):
    path, observe = tmp_path / "stopped", DQN.observe

    def interrupted(self, *arguments):
        if self.step == 200:
            os.kill(os.getpid(), signal.SIGINT)
        return observe(self, *arguments)

    monkeypatch.setattr(DQN, "observe", interrupted)
    assert run(*TRAIN, "--run-dir", path) == 130
    monkeypatch.undo()
    assert f"go on with: triax resume {path}" in capsys.readouterr().out
    record = Run.open(path).record
    assert (record.state, record.step) == ("stopped", 201)
    assert run("resume", path) == 0
    assert_same_run(path, unbroken)


@pytest.mark.slow
def test_a_finished_run_trains_longer_from_its_last_state_as_it_does_from_its_beginning(tmp_path, copied):
    start = Run.open(copied).states.latest_step()
    assert run("resume", copied, "--steps", 700) == 0
    record = Run.open(copied).record
    assert [(s.from_step, s.total_steps) for s in record.sessions] == [(0, 600), (start, 700)]
    other = tmp_path / "other"
    assert run(*TRAIN, "--run-dir", other, "--checkpoint-every", "1e9") == 0
    shutil.rmtree(other / "states", ignore_errors=True)
    assert run("resume", other, "--steps", 700) == 0
    assert [s.from_step for s in Run.open(other).record.sessions] == [0, 0]
    assert_same_run(copied, other)


# ------------------------------------------------------------------ what is refused or told


def test_a_run_that_is_done_says_how_to_go_on(unbroken, capsys):
    for arguments in ((), ("--steps", 600), ("--steps", 5)):
        assert run("resume", unbroken, *arguments) == 1
        error = capsys.readouterr().err
        assert f"has done 600 of {arguments[1] if arguments else 600} steps. To go on:" in error
        assert "--steps N, with N above 600" in error
    assert len(Run.open(unbroken).record.sessions) == 1


@pytest.mark.slow
def test_a_run_that_reached_its_goal_goes_on_beyond_it_when_told(tmp_path, capsys):
    path = tmp_path / "g"
    assert run("train", "dqn", "CartPole-v1", "--run-dir", path, *QUICK, "--stop-at", "1") == 0
    assert Run.open(path).record.reached_goal
    assert run("resume", path) == 1
    assert "finished: it reached its goal at step 300" in capsys.readouterr().err
    assert run("resume", path, "--stop-at", "inf") == 0
    record = Run.open(path).record
    assert (record.state, record.step, record.sessions[-1].stop_at) == ("finished", 600, np.inf)


@pytest.mark.parametrize(("option", "value"), [("--steps", 0), ("--stop-at", "nan")])
def test_numbers_that_make_no_sense_are_wrong_usage(option, value, unbroken):
    assert run("resume", unbroken, option, value) == 2


def test_a_run_in_use_is_left_alone(unbroken, capsys):
    lock = FolderLock(unbroken)
    assert run("resume", unbroken, "--steps", "1000") == 1
    assert "another process is training this run" in capsys.readouterr().err
    lock.release()


def test_other_versions_and_damaged_states_are_told_and_the_state_before_is_taken(copied, capsys):
    record = json.loads((copied / "record.json").read_text())
    record["record"]["sessions"][0]["versions"]["jax"] = "0.0.1"
    (copied / "record.json").write_text(json.dumps(record))
    opened = Run.open(copied)
    before = opened.states.latest_step()
    assert load_state(opened.states, before)["scalars"]["step"] == before
    later = opened.states.path(before + 1)
    shutil.copytree(opened.states.path(before), later)
    (later / "checkpoint.json").write_text("{")
    assert run("resume", copied, "--steps", "901") == 0
    said = capsys.readouterr()
    assert f"goes on from step {before} to 901" in said.out
    assert f"{later}: checkpoint.json cannot be read" in said.err
    assert "Taking the state before" in said.err
    assert "trained so far with jax 0.0.1, now" in said.err


def test_the_state_of_another_architecture_is_refused_and_nothing_is_changed(copied, capsys):
    config = json.loads((copied / "config.json").read_text())
    config["config"]["agent"]["hidden"] = [9]
    (copied / "config.json").write_text(json.dumps(config))
    metrics = (copied / "metrics.jsonl").read_bytes()
    assert run("resume", copied, "--steps", "1000") == 1
    error = capsys.readouterr().err
    assert "expected float32[4,9], got float32[4,8]" in error
    assert error.count("\n") == 1
    assert (copied / "metrics.jsonl").read_bytes() == metrics
