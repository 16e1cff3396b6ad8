"""Every script in examples/ runs with a tiny budget, is short enough to read, and is in the table of examples."""

import ast
import importlib.util
import re
import runpy
import sys

import pytest

from pages import ROOT

FOLDER = ROOT / "examples"
SCRIPTS = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.py"))
TABLE = (FOLDER / "README.md").read_text()

TINY = {
    "frozen_lake": "--steps 60",
    "cartpole": "--steps 120",
    "pendulum": "--steps 300",
    "pendulum/ppo.py": "--steps 220 --rollout 128",
    "atari/dqn.py": "--steps 150 --warm-up 100 --capacity 200",
    "atari/ppo.py": "--steps 200 --rollout 128",
    "dm_control": "--steps 200",
    "connect_four": "--steps 100",
    "device": "--steps 600",
    "device/sweep.py": "--steps 160 --seeds 2 --learning-rates 1e-3 3e-3",
}
"""Options that make a script short, by its name or else its folder."""

SLOW = {"atari/dqn.py", "device/delayed_observations.py", "device/distillation.py", "pendulum/dsac.py"}
"""The longest ones, of kinds of which the gate runs another one."""

NEEDS = {"atari": ["ale_py"], "dm_control": ["shimmy", "dm_control"], "device/wandb_logging.py": ["wandb"]}
"""Packages beyond the development ones, by script or folder."""


def of(script, table, default):
    return table.get(script, table.get(script.split("/")[0], default))


@pytest.mark.parametrize(
    "script", [pytest.param(script, marks=[pytest.mark.slow] * (script in SLOW)) for script in SCRIPTS]
)
def test_a_script_runs_with_a_tiny_budget_and_prints_the_return(script, tmp_path, monkeypatch, capsys):
    for package in of(script, NEEDS, []):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; it comes with triax[examples].")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUJOCO_GL", "disabled")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setattr(sys, "argv", [script, *of(script, TINY, "").split()])
    runpy.run_path(str(FOLDER / script), run_name="__main__")
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.match(r"return: (-?\d+(\.\d+)?|nan)\b", last), last


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_one_short_file_that_says_what_it_shows(script):
    source = (FOLDER / script).read_text()
    assert source.count("\n") < 120
    tree = ast.parse(source)
    assert ast.get_docstring(tree)
    assert "tyro.cli(main)" in source
    imported = {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {path.stem for path in FOLDER.rglob("*")}, "no helper modules"


def test_the_table_has_each_script_once_with_its_time_and_return():
    rows = re.findall(r"^\| `python examples/(\S+)[^`]*` \|[^|]+\|([^|]+)\|([^|]+)\|$", TABLE, flags=re.MULTILINE)
    assert sorted({name for name, _, _ in rows}) == SCRIPTS
    assert all(time.strip() and reached.strip() for _, time, reached in rows)
