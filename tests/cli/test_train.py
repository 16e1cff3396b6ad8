"""``triax train`` leaves what it promises, and ``triax evaluate`` reads it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from triax.cli import main
from triax.runs import Run

QUICK = ["--total-steps", "600", "--eval-every", "300", "--eval-episodes", "2", "--hidden", "8"]
QUICK += ["--learning-starts", "100", "--batch-size", "16"]


def run(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as exit_info:
        main([str(argument) for argument in arguments])
    return exit_info.value.code


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
    first, second = (Run.open(path).read_metrics() for path in (trained, tmp_path / "b"))
    for name in ("episode/return", "DoubleQLearning/loss"):
        assert list(first.series(name)[1]) == list(second.series(name)[1])


def test_a_used_directory_is_not_overwritten_unasked(trained, capsys):
    assert run("train", "dqn", "CartPole-v1", "--run-dir", trained, *QUICK) == 1
    assert "not empty" in capsys.readouterr().err
    assert Run.open(trained).checkpoints.latest_step() == 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "dqn", "NoSuchEnv-v0"), "NoSuchEnv"),
        (("train", "dqn", "Pendulum-v1"), "Discrete"),
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
    [("--eval-every", 0), ("--batch-size", 0), ("--total-steps", 0), ("--learning-rate", -1), ("--seed", -1)],
)
def test_numbers_that_make_no_sense_are_refused_before_a_directory_is_made(option, value, tmp_path):
    path = tmp_path / "e"
    assert run("train", "dqn", "CartPole-v1", "--run-dir", path, option, value) == 2
    assert not path.exists()


def test_a_buffer_too_small_to_learn_from_is_refused(tmp_path):
    assert run("train", "dqn", "CartPole-v1", "--run-dir", tmp_path / "f", "--buffer-size", 10) == 2
