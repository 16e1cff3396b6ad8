import json
import re
import shutil
import sys

import pytest

from pages import ROOT
from triax.cli.environments import is_on_device, make_any_env
from triax.core.errors import MissingExtraError
from triax.envs import make
from triax.runs import Run
from triax.runs.lock import FolderLock

from .running import run


def lines_of(capsys):
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def cells(lines, name):
    (line,) = [line for line in lines if line.split() and line.split()[0] == name]
    return line.split()


def test_algorithms_are_listed_with_what_they_need(tmp_path, capsys):
    assert run("list", tmp_path) == 0
    lines = lines_of(capsys)
    assert any(line.startswith("dqn ") and "Discrete actions" in line for line in lines)
    assert lines[-1] == f"No runs in {tmp_path}."


@pytest.mark.parametrize("prefix", ["gymnax", "brax", "playground"])
def test_environments_are_listed_with_the_extra_that_the_error_without_it_names(prefix, tmp_path, capsys, monkeypatch):
    for module in ("gymnax", "brax", "mujoco_playground"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingExtraError) as missing:
        make(f"{prefix}:CartPole")
    assert run("list", tmp_path) == 0
    (line,) = [line for line in lines_of(capsys) if line.startswith(f"{prefix}:NAME")]
    assert line.endswith(str(missing.value).partition("Try: ")[2])


def test_the_jax_environment_that_is_listed_as_needing_no_extra_can_be_made(tmp_path, capsys, monkeypatch):
    assert run("list", tmp_path) == 0
    out = " ".join(capsys.readouterr().out.split())
    name, folder = re.search(r"examples, (\S+) with PYTHONPATH=(\S+)", out).groups()
    monkeypatch.syspath_prepend(ROOT / folder)
    assert is_on_device(make_any_env(name))
    sys.modules.pop(name.partition(":")[0])


def test_elsewhere_than_in_a_terminal_there_are_80_columns_without_boxes_and_a_line_for_each_run(
    strips, tmp_path, capsys
):
    name = "a-name-that-is-longer-than-any-terminal-is-wide-" * 3
    shutil.copytree(strips / "b", tmp_path / name)
    assert run("list", tmp_path) == 0
    out = capsys.readouterr().out
    assert out.isascii(), "no characters of boxes"
    texts, _, runs = out.partition("Runs in")
    assert max(map(len, texts.splitlines())) <= 80
    assert [line.split()[1] for line in runs.splitlines() if line.startswith(name)] == ["dqn"]


def test_runs_are_listed_with_how_far_they_came(strips, capsys):
    assert run("list", strips) == 0
    lines = lines_of(capsys)
    last = Run.open(strips / "a" / "1").read_metrics().series("eval/episode_reward/mean")[1][-1]
    assert cells(lines, "a/1")[1:9] == ["dqn", "cli.envs:Strip-v0", "1", "80", "/", "80", f"{last:.1f}", "finished"]
    assert [line.split()[0] for line in lines if "Strip" in line] == ["a/0", "a/1", "b"]
    assert not any("Not readable" in line for line in lines)


@pytest.fixture
def some(strips, tmp_path):
    for name in ("killed", "stopped", "goal", "held"):
        path = shutil.copytree(strips / "b", tmp_path / name)
        record = json.loads((path / "record.json").read_text())
        state = {"killed": "unfinished", "held": "unfinished", "stopped": "stopped", "goal": "finished"}[name]
        record["record"] |= {"state": state, "step": 30, "seconds": 3700.2}
        if name == "stopped":
            record["record"]["sessions"] *= 2
        (path / "record.json").write_text(json.dumps(record))
    return tmp_path


def test_states_of_runs_are_told_apart(some, capsys):
    lock = FolderLock(some / "held")
    assert run("list", some) == 0
    lock.release()
    lines = lines_of(capsys)
    assert cells(lines, "killed")[-2:] == ["unfinished", "1:01:40"]
    assert cells(lines, "held")[-2:] == ["running", "1:01:40"]
    assert cells(lines, "stopped")[-4:-1] == ["stopped,", "resumed", "1x"]
    assert "finished at its goal" in " ".join(cells(lines, "goal"))
    assert cells(lines, "killed")[4:7] == ["80", "/", "80"]  # what was logged since the record


def test_broken_runs_are_named_with_the_reason_and_others_listed_all_the_same(some, capsys):
    breaks = {
        "killed": lambda path: (path / "config.json").unlink(),
        "stopped": lambda path: (path / "config.json").write_text("{"),
        "goal": lambda path: (path / "record.json").write_text("[]"),
        "held": lambda path: (path / "metrics.jsonl").write_text("x\n{}\n"),
    }
    for name, destroy in breaks.items():
        destroy(some / name)
    shutil.copytree(some / "held" / "checkpoints", some / "bare" / "checkpoints")
    (some / "notes").mkdir()
    (some / "notes" / "a.txt").write_text("mine")
    assert run("list", some) == 0
    lines = lines_of(capsys)
    reasons = {line.split()[2].rstrip(":").rpartition("/")[2]: line for line in lines if "Not readable" in line}
    assert set(reasons) == {"killed", "stopped", "goal", "held", "bare"}
    assert "holds no run: expected a config.json" in reasons["killed"]
    assert "is not a JSON file" in reasons["stopped"]
    assert "no record of a run" in reasons["goal"]
    assert "metrics.jsonl, line 1" in reasons["held"]


def test_a_run_itself_can_be_listed(strips, capsys):
    assert run("list", strips / "b") == 0
    assert cells(lines_of(capsys), "b")[1] == "dqn"


def test_a_directory_that_is_not_there_is_an_error_unless_it_is_the_usual_one(tmp_path, capsys, monkeypatch):
    assert run("list", tmp_path / "nowhere") == 1
    assert "nowhere is no directory" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert run("list") == 0
    assert "No runs in runs." in capsys.readouterr().out
