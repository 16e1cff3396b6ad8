"""``triax train`` leaves what it promises, and ``triax evaluate`` reads it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import triax
from triax.runs import Run, load_arrays

from .running import QUICK, run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "a"
    assert run("train", "dqn", "CartPole-v1", "--run-dir", path, "--seed", 3, *QUICK) == 0
    return path


def test_a_run_leaves_config_metrics_events_curve_and_weights(trained):
    assert json.loads((trained / "config.json").read_text())
    assert list(trained.glob("tensorboard/**/*tfevents*"))
    assert (trained / "learning-curve.png").stat().st_size > 10_000
    opened = Run.open(trained)
    assert opened.checkpoints.latest_step() == 600
    names = opened.read_metrics().names()
    assert {"episode/return", "episode/steps", "eval/episode_reward/mean", "DoubleQLearning/loss"} <= set(names)


def test_evaluate_prints_mean_and_spread_and_is_repeatable(trained, capsys):
    outputs = []
    for _ in range(2):
        assert run("evaluate", trained, "--episodes", 3) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert "CartPole-v1" in outputs[0]
    assert "3 episodes" in outputs[0]
    assert "+-" in outputs[0]


def test_the_best_weights_are_evaluated_unless_the_last_are_asked_for(trained, capsys):
    log = Run.open(trained).read_metrics()
    steps, means = log.series("eval/episode_reward/mean")
    run("evaluate", trained, "--episodes", 1)
    assert f"step {steps[means.argmax()]}" in capsys.readouterr().out
    run("evaluate", trained, "--episodes", 1, "--last")
    assert "step 600" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_run(trained, tmp_path):
    assert run("train", "dqn", "CartPole-v1", "--run-dir", tmp_path / "b", "--seed", 3, *QUICK) == 0
    runs = Run.open(trained), Run.open(tmp_path / "b")
    first, second = ([{**row, "time": 0} for row in opened.read_metrics().rows] for opened in runs)
    assert first == second and len(first) > 10
    mine, others = (load_arrays(opened.checkpoints.path(600)).tree for opened in runs)
    assert mine.keys() == others.keys() and mine
    for name, leaf in mine.items():
        np.testing.assert_array_equal(leaf, others[name])


def test_a_used_directory_is_not_overwritten_unasked(trained, capsys):
    assert run("train", "dqn", "CartPole-v1", "--run-dir", trained, *QUICK) == 1
    error = capsys.readouterr().err
    assert "not empty" in error
    assert "--overwrite" in error
    assert "overwrite=True" not in error
    assert Run.open(trained).checkpoints.latest_step() == 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "dqn", "NoSuchEnv-v0"), "NoSuchEnv"),
        (("train", "dqn", "Pendulum-v1"), "Discrete"),
        (("train", "dqn", "nomod:X-v0"), "'nomod:X-v0' cannot be made: No module named 'nomod'"),
        (("train", "dqn", "a:b:c"), "'a:b:c' is no name of an environment: expected Name-v0 or module:Name-v0"),
        (("train", "dqn", "json:X-v0"), "'json:X-v0' cannot be made"),
        (("evaluate", "/nowhere"), "holds no run"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_with_exit_code_1(arguments, message, capsys, tmp_path):
    extra = ("--run-dir", tmp_path / "x") if arguments[0] == "train" else ()
    assert run(*arguments, *extra) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_wrong_usage_exits_with_2(capsys):
    assert run("train", "dqn") == 2
    assert run("fly") == 2


def test_weights_of_another_architecture_are_refused_by_leaf(trained, capsys):
    config = trained / "config.json"
    text = config.read_text()
    try:
        changed = json.loads(text)
        _replace_hidden(changed)
        config.write_text(json.dumps(changed))
        assert run("evaluate", trained) == 1
        assert "kernel" in capsys.readouterr().err
    finally:
        config.write_text(text)


def _replace_hidden(node):
    for key, value in node.items():
        if key == "hidden":
            node[key] = [9]
        elif isinstance(value, dict):
            _replace_hidden(value)


def test_ctrl_c_stops_cleanly_keeps_what_was_learned_and_says_where(tmp_path):
    path = tmp_path / "c"
    arguments = ["train", "dqn", "CartPole-v1", "--run-dir", str(path), "--hidden", "8", "--total-steps", "10000000"]
    arguments += ["--stop-at", "1000", "--eval-every", "100000000"]
    script = f"from triax.cli import main; main({arguments!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    )
    metrics = path / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (metrics.exists() and metrics.stat().st_size > 2000):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "Stopped after" in output
    assert f"triax resume {path}" in output
    assert str(path) in output
    assert run("evaluate", path, "--episodes", 1, "--last") == 0
    assert Path(path / "learning-curve.png").exists()


def test_overwriting_leaves_nothing_of_the_earlier_run(tmp_path, capsys):
    path = tmp_path / "d"
    run("train", "dqn", "CartPole-v1", "--run-dir", path, *QUICK)
    shorter = ["--total-steps", "200", "--eval-every", "200", "--eval-episodes", "1", "--hidden", "4"]
    assert run("train", "dqn", "CartPole-v1", "--run-dir", path, "--overwrite", *shorter) == 0
    capsys.readouterr()
    assert run("evaluate", path, "--episodes", 1) == 0
    assert "step 200" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--eval-every", 0),
        ("--batch-size", 0),
        ("--total-steps", 0),
        ("--checkpoint-every", -1),
        ("--checkpoint-every", "nan"),
        ("--learning-rate", -1),
        ("--learning-rate", "inf"),
        ("--hidden", 0),
        ("--seed", -1),
        ("--seed", 99999999999999999999),
    ],
)
def test_numbers_that_make_no_sense_are_refused_before_a_directory_is_made(option, value, tmp_path, capsys):
    path = tmp_path / "e"
    assert run("train", "dqn", "CartPole-v1", "--run-dir", path, option, value) == 2
    assert not path.exists()
    error = capsys.readouterr().err
    assert option[2:].replace("-", "_") in error
    assert "dummy" not in error


@pytest.mark.parametrize(("option", "value"), [("--episodes", 0), ("--seed", 99999999999999999999), ("--seed", -1)])
def test_evaluate_refuses_them_too(option, value, trained, capsys):
    assert run("evaluate", trained, option, value) == 2
    assert f"{option[2:]} must be" in capsys.readouterr().err


def test_a_buffer_too_small_to_learn_from_is_refused(tmp_path):
    assert run("train", "dqn", "CartPole-v1", "--run-dir", tmp_path / "f", "--buffer-size", 10) == 2


# ------------------------------------------------------------------ what is said


def test_the_version_is_printed(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"triax {triax.__version__}\n"


def test_help_describes_the_program_and_its_arguments(capsys):
    assert run("--help") == 0
    assert "Reinforcement learning on JAX" in capsys.readouterr().out
    assert run("train", "dqn", "--help") == 0
    assert "usage: triax train dqn [-h] [OPTIONS] ENV" in capsys.readouterr().out
    usages = {"evaluate": "[-h] RUN", "resume": "[-h] [OPTIONS] RUN", "video": "[-h] [OPTIONS] RUN", "list": "[-h] DIR"}
    for command, said in usages.items():
        assert run(command, "--help") == 0
        assert f"usage: triax {command} {said}" in capsys.readouterr().out
    assert run("plot", "--help") == 0
    assert "RUN..." in capsys.readouterr().out


@pytest.mark.parametrize(("goal", "said"), [("1", "(goal of 1 reached)"), ("1e6", "(goal of 1e+06 not reached)")])
def test_the_last_lines_tell_whether_the_goal_was_reached(goal, said, tmp_path, capsys):
    arguments = ["--run-dir", tmp_path / "g", *QUICK, "--total-steps", "300", "--stop-at", goal]
    assert run("train", "dqn", "CartPole-v1", *arguments) == 0
    output = capsys.readouterr().out
    assert said in output
    assert "average return while exploring" in output


def test_evaluate_makes_the_agent_that_the_config_names(trained, capsys):
    config = trained / "config.json"
    text = config.read_text()
    try:
        changed = json.loads(text)
        assert changed["config"]["algorithm"] == "dqn"
        changed["config"]["algorithm"] = "alchemy"
        config.write_text(json.dumps(changed))
        assert run("evaluate", trained) == 1
        assert "was trained with the algorithm 'alchemy'; known are: dqn" in capsys.readouterr().err
    finally:
        config.write_text(text)


# ------------------------------------------------------------------ Ctrl-C early


class InterruptedEnv(gymnasium.Env):
    """An endless episode in which a signal comes at the third step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.step_count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.step_count += 1
        if self.step_count == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return np.zeros(2, np.float32), 1.0, False, False, {}


def test_ctrl_c_before_the_first_episode_has_ended_keeps_a_checkpoint(tmp_path, capsys):
    gymnasium.register("Interrupted-v0", InterruptedEnv)
    try:
        path = tmp_path / "h"
        assert run("train", "dqn", "Interrupted-v0", "--run-dir", path, "--hidden", "4") == 130
    finally:
        gymnasium.registry.pop("Interrupted-v0")
    assert Run.open(path).checkpoints.latest_step() == 3
    assert "Stopped after 3 steps" in capsys.readouterr().out


def test_ctrl_c_while_a_run_is_set_up_still_leaves_a_whole_one(tmp_path, monkeypatch, capsys):
    from triax.cli import environments, host_training

    calls = []

    def interrupted_once(name):
        calls.append(name)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return environments.make_env(name)

    monkeypatch.setattr(host_training, "make_env", interrupted_once)
    path = tmp_path / "i"
    assert run("train", "dqn", "CartPole-v1", "--run-dir", path, "--hidden", "4") == 130
    assert Run.open(path).checkpoints.latest_step() == 1


def test_ctrl_c_elsewhere_ends_with_a_line_and_130(trained, monkeypatch, capsys):
    from triax.cli import evaluate

    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "make_env", interrupted)
    assert run("evaluate", trained) == 130
    assert capsys.readouterr().err == "triax: interrupted\n"
