"""``triax train --workers``."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from cli.running import run
from triax.cli import distributed_loop
from triax.distributed import ApeX, DistributedError, session
from triax.runs import Run

TINY = ["--hidden", "8", "--batch-size", "8", "--eval-episodes", "2", "--stop-at", "inf", "--learning-starts", "100"]
SHORT = ["--workers", "2", *TINY, "--total-steps", "700", "--eval-every", "350"]


@pytest.mark.usefixtures("cluster")
def test_two_workers_learn_cartpole_and_leave_a_run_that_is_evaluated(tmp_path, capsys):
    path = tmp_path / "run"
    learning = ["--workers", 2, "--total-steps", 30_000, "--eval-every", 500, "--eval-episodes", 5, "--stop-at", 120]
    options = ["--hidden", 64, 64, "--learning-starts", 200, "--learning-rate", 0.002, "--tau", 0.01]
    assert run("train", "dqn", "CartPole-v1", *learning, *options, "--run-dir", path) == 0
    opened = Run.open(path)
    record, metrics = opened.record, opened.read_metrics()
    assert record.reached_goal  # a random policy gets 22
    assert opened.read_config()["processes"]["workers"] == 2
    assert {"loss", "episode/return", "eval/episode_reward/mean", "distributed/restarts"} <= set(metrics.names())
    updates = metrics.series("distributed/updates")[1][-1]
    assert record.step - 200 - 17 < updates + 2 * 2 * 32 and updates <= record.step - 200
    assert (path / "learning-curve.png").stat().st_size > 5_000
    capsys.readouterr()
    assert run("evaluate", path, "--episodes", 5) == 0
    found = re.search(r"dqn, weights of step ([\d,]+): mean return ([\d.]+)", capsys.readouterr().out)
    assert found[1] == f"{record.step:,}"
    assert float(found[2]) > 60


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_it_is_resumed_in_new_episodes_with_as_many_workers_as_are_asked_for_and_says_so(tmp_path, capsys, monkeypatch):
    path, began = tmp_path / "run", []
    assert run("train", "dqn", "CartPole-v1", *SHORT, "--run-dir", path) == 0

    class Noted(ApeX):
        def start(self, *args):
            super().start(*args)
            began.append(list(self.pids))

    monkeypatch.setattr(distributed_loop, "ApeX", Noted)
    assert run("resume", path, "--steps", 900, "--workers", 3) == 0
    assert began == [["the learner", "the replay", *(f"rollout worker {i}" for i in range(3))]]
    assert "begin new episodes" in capsys.readouterr().err
    opened = Run.open(path)
    assert opened.record.step == 900
    assert 780 < opened.read_metrics().series("distributed/updates")[1][-1] <= 800


def test_without_ray_the_extra_is_named_and_nothing_is_left(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    for command in (["dqn"], ["sac"]):
        env = "CartPole-v1" if command == ["dqn"] else "Pendulum-v1"
        assert run("train", *command, env, "--workers", 4, "--run-dir", tmp_path / "x") == 1
        error = capsys.readouterr().err
        assert "--workers 4 needs the package 'ray'. Try: pip install 'triax[ray]'" in error
        assert error.count("\n") == 1
        assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("q-learning", "jax_envs:CartPole", "--workers", 2), 1, "--workers 2 needs a Gymnasium environment"),
        (("ppo", "jax_envs:CartPole", "--devices", 4), 2, "multiple of n_minibatches * devices, 16; got 8"),
        (("dqn", "CartPole-v1", "--workers", -1), 2, "workers must not be negative; got -1"),
        (("dqn", "CartPole-v1", "--address", "auto"), 2, "address needs workers: try --workers 4"),
        (("sac", "Pendulum-v1", "--workers", 2, "--seeds", 2), 1, "--seeds 2 needs a JAX environment"),
    ],
)
def test_what_cannot_run_in_many_processes_or_on_many_devices_is_said_before_a_directory_is_made(
    arguments, code, message, tmp_path, capsys
):
    assert run("train", *arguments, "--run-dir", tmp_path / "x") == code
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not (tmp_path / "x").exists()


def test_a_run_of_one_process_is_not_resumed_in_many(tmp_path, capsys):
    path, steps = tmp_path / "run", ["--total-steps", 30, "--eval-every", 30]
    assert run("train", "dqn", "CartPole-v1", *TINY, *steps, "--run-dir", path) == 0
    assert run("resume", path, "--steps", 60, "--workers", 2, "--address", "auto") == 1
    assert "--workers 2 --address auto is for runs that were begun with --workers" in capsys.readouterr().err
    assert Run.open(path).record.step == 30


def test_an_address_where_nobody_listens_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DistributedError, match=rf"no Ray cluster answers at {address}: .*refused"):
            session._initialize(address, 3)


def processes_of(mark):
    """Those that have it in their environment, as everything has that a command starts."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes() and (entry / "stat").read_text().split()[-50] != "Z":
                found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()[:120]}")
        except OSError:  # it has just ended, or is not ours
            continue
    return found


def start(path, mark, *arguments):
    """The command in a process group of its own, as a terminal starts it."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "triax_command",
            "train",
            "dqn",
            "CartPole-v1",
            *TINY,
            "--workers",
            "1",
            *arguments,
            "--run-dir",
            path,
        ],
        env={**os.environ, "TRIAX_MARK": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition, seconds=240.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_ctrl_c_keeps_what_was_learned_and_leaves_no_process(tmp_path):
    mark, path = uuid.uuid4().hex, tmp_path / "run"
    command = start(path, mark, "--total-steps", "10000000", "--eval-every", "200")
    wait_for(lambda: (path / "metrics.jsonl").exists() and "eval/" in (path / "metrics.jsonl").read_text())
    assert len(processes_of(mark)) >= 6  # the driver, three of its own, and Ray's
    os.killpg(command.pid, signal.SIGINT)  # all of them hear it, as in a terminal
    error = command.communicate(timeout=120)[1]
    assert command.returncode == 130, error
    assert Run.open(path).record.state == "stopped"
    assert Run.open(path).states.latest_step() == Run.open(path).record.step > 0
    wait_for(lambda: not processes_of(mark), seconds=30)


@pytest.mark.slow
def test_when_ray_itself_is_killed_all_ends_at_once_and_the_last_state_is_resumed(tmp_path):
    mark, path = uuid.uuid4().hex, tmp_path / "run"
    command = start(path, mark, "--total-steps", "10000000", "--eval-every", "200", "--checkpoint-every", "0")
    wait_for(lambda: (path / "states").exists() and Run.open(path).states.latest_step())
    [raylet] = [found.split()[0] for found in processes_of(mark) if "raylet/raylet" in found]
    os.kill(int(raylet), signal.SIGKILL)
    command.communicate(timeout=60)
    assert command.returncode == 1
    wait_for(lambda: not processes_of(mark), seconds=30)
    assert run("resume", path, "--steps", Run.open(path).states.latest_step() + 100) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers", [[signal.SIGKILL], [signal.SIGTERM], [signal.SIGINT], [signal.SIGINT, signal.SIGINT]]
)
@pytest.mark.parametrize("started", [3, 7])
def test_no_process_outlives_a_command_that_was_ended_while_it_started(tmp_path, numbers, started):
    mark, path = uuid.uuid4().hex, tmp_path / "run"
    command = start(path, mark, "--total-steps", "10000000")
    wait_for(lambda: len(processes_of(mark)) >= started)
    for number in numbers:
        command.send_signal(number)
        time.sleep(0.5)
    command.communicate(timeout=30)
    assert command.returncode == (130 if signal.SIGINT in numbers or signal.SIGTERM in numbers else -signal.SIGKILL)
    wait_for(lambda: not processes_of(mark), seconds=90)


@pytest.fixture
def two_machines():
    """The address of a cluster of two nodes, which cannot hold the processes of a run on one of them."""
    from ray.cluster_utils import Cluster

    options = {"include_dashboard": False, "object_store_memory": 100 * 2**20}
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, **options})
    try:
        nodes.add_node(num_cpus=2, object_store_memory=100 * 2**20)
        yield nodes.address
    finally:
        nodes.shutdown()


@pytest.mark.slow
def test_a_cluster_is_used_by_its_address_and_outlives_the_run(two_machines, tmp_path):
    mark, path = uuid.uuid4().hex, tmp_path / "run"
    arguments = ["--workers", "2", "--address", two_machines, "--total-steps", "900", "--eval-every", "900"]
    command = start(path, mark, *arguments)
    error = command.communicate(timeout=240)[1]
    assert command.returncode == 0, error
    assert (Run.open(path).record.state, Run.open(path).record.step) == ("finished", 900)
    assert Run.open(path).read_config()["processes"]["workers"] == 2
    assert not processes_of(mark)
    again = start(tmp_path / "again", mark, *arguments, "--seed", "1")  # the CPUs are free again
    assert again.wait(timeout=240) == 0
