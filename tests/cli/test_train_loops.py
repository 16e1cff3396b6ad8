"""``triax train`` of pure agents, on the device and in Gymnasium environments side by side."""

import functools
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from triax.cli import device_loops, host_training, loop_training
from triax.cli.environments import make_any_env
from triax.cli.train_commands import TrainC51, TrainDDPG, TrainQRDQN, TrainReinforce, TrainTD3
from triax.loops import Progressed
from triax.runs import Progress, Run
from triax.wrappers import TrainMonitor

from .envs import Strip
from .running import run
from .test_resume import assert_same_run

TINY = ["--hidden", "4", "--eval-episodes", "2"]
PPO = [*TINY, "--num-envs", "4", "--rollout-length", "8", "--n-epochs", "1", "--n-minibatches", "2"]
PPO += ["--total-steps", "256", "--log-every", "64", "--eval-every", "128"]
REPLAY = [*TINY, "--warm-up", "40", "--batch-size", "8", "--capacity", "200", "--total-steps", "120"]
REPLAY += ["--log-every", "40", "--eval-every", "40", "--stop-at", "inf"]
SEEDS = ["train", "ppo", "jax_envs:CartPole", *PPO, "--seed", "5", "--seeds", "2", "--stop-at", "inf"]


@pytest.fixture(scope="module", autouse=True)
def same_environments():
    """Programs are compiled once for one environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_training, "make_any_env", functools.cache(make_any_env))
        yield


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Two seeds of PPO on the device, in one program."""
    path = tmp_path_factory.mktemp("loops") / "seeds"
    assert run(*SEEDS, "--run-dir", path) == 0
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ("a2c", "cli.envs:Strip-v0", *PPO, "--n-minibatches", "1"),
        ("td3", "jax_envs:Pendulum", *REPLAY),
    ],
)
def test_an_agent_leaves_a_run_that_is_evaluated_and_drawn(arguments, tmp_path, capsys):
    path = tmp_path / "run"
    assert run("train", *arguments, "--run-dir", path) == 0
    opened = Run.open(path)
    total = int(arguments[arguments.index("--total-steps") + 1])
    assert (opened.record.state, opened.record.step) == ("finished", total)
    names = set(opened.read_metrics().names())
    assert {"eval/episode_reward/mean", "eval/episode_reward/std", "episode/count"} <= names
    assert any("loss" in name for name in names)
    assert (path / "learning-curve.png").stat().st_size > 5_000
    capsys.readouterr()
    assert run("evaluate", path, "--episodes", 2, "--last") == 0
    assert f"{arguments[0]}, weights of step {total}: mean return" in capsys.readouterr().out


def test_each_seed_has_a_run_of_its_own_and_the_whole_one_their_mean(seeds, capsys):
    whole, each = Run.open(seeds), [Run.open(seeds / "seeds" / str(seed)) for seed in (5, 6)]
    assert [one.read_config()["seed"] for one in each] == [5, 6]
    name = "losses/total/mean"
    steps, mean = whole.read_metrics().series(name)
    own = np.array([one.read_metrics().series(name)[1] for one in each])
    assert list(steps) == [64, 128, 192, 256]
    assert not np.allclose(own[0], own[1])
    np.testing.assert_allclose(own.mean(axis=0), mean, rtol=1e-6)
    assert [one.record.state for one in each] == ["finished", "finished"]
    assert run("evaluate", seeds, "--episodes", 2) == 0
    said = capsys.readouterr().out.splitlines()
    assert ["seed 5" in line for line in said] == [True, False]
    assert run("plot", seeds, "--out", seeds / "p.png") == 0
    assert "2 runs" in capsys.readouterr().out
    assert run("list", seeds.parent) == 0
    assert "5 to 6" in capsys.readouterr().out
    assert run("video", seeds) == 1
    assert run("resume", seeds / "seeds" / "5", "--steps", 512) == 1
    assert f"triax resume {seeds}" in capsys.readouterr().err


@pytest.mark.slow
def test_seeds_on_the_device_that_were_stopped_end_as_unbroken_ones(seeds, tmp_path, monkeypatch):
    path, advance = tmp_path / "stopped", device_loops.DeviceLoop.advance

    def interrupted(self, *arguments):
        metrics = advance(self, *arguments)
        if self.step == 128:
            os.kill(os.getpid(), signal.SIGINT)
        return metrics

    monkeypatch.setattr(device_loops.DeviceLoop, "advance", interrupted)
    assert run(*SEEDS, "--run-dir", path) == 130
    monkeypatch.undo()
    record = Run.open(path).record
    assert (record.state, record.step) == ("stopped", 128)
    assert run("resume", path) == 0
    for part in ("", "seeds/5", "seeds/6"):
        assert_same_run(path / part, seeds / part)


@pytest.mark.slow
def test_a_gymnasium_run_goes_on_in_new_episodes_and_says_so(tmp_path, capsys):
    path = tmp_path / "vector"
    assert run("train", "q-learning", "cli.envs:Strip-v0", *REPLAY, "--run-dir", path) == 0
    assert run("resume", path, "--steps", 160) == 0
    said = capsys.readouterr()
    assert "goes on from step 120 to 160" in said.out
    assert "begin new episodes" in said.err
    opened = Run.open(path)
    assert opened.record.step == 160
    assert list(opened.read_metrics().series("eval/episode_reward/mean")[0]) == [40, 80, 120, 160]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ppo", "CartPole-v1", "--seeds", 2), 1, "--seeds 2 needs a JAX environment"),
        (("ppo", "CartPole-v1", "--seeds", 2), 1, "Try gymnax:CartPole-v1 (pip install 'triax[gymnax]') or a class of"),
        (("ppo", "CartPole-v1", "--devices", 2), 1, "Try gymnax:CartPole-v1 (pip install 'triax[gymnax]') or a class"),
        (("ppo", "nomod:Class"), 1, "Try PYTHONPATH=FOLDER, where FOLDER holds nomod.py."),
        (("ppo", "nomod:Name-v0"), 1, "Try PYTHONPATH=FOLDER, where FOLDER holds nomod.py."),
        (("sac", "jax_envs:Pendulum", "--seeds", 0), 2, "seeds must be at least 1"),
        (("ppo", "CartPole-v1", "--num-envs", 6), 2, "num_envs must be a multiple of n_minibatches; got 6 and 4"),
        (("td3", "CartPole-v1"), 1, "Box"),
        (("ppo", "nomod:Class"), 1, "'nomod:Class' cannot be made: No module named 'nomod'"),
        (("dqn", "jax_envs:CartPole"), 1, "is a JAX environment, and a Gymnasium one is needed"),
        (("dqn", "gymnax:CartPole-v1"), 1, "is a JAX environment, and a Gymnasium one is needed"),
    ],
)
def test_what_cannot_be_trained_is_said_before_a_directory_is_made(arguments, code, message, tmp_path, capsys):
    assert run("train", *arguments, "--run-dir", tmp_path / "x") == code
    error = capsys.readouterr().err
    assert message in " ".join(error.replace("│", " ").split())
    assert code == 2 or error.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_presets_differ_from_ppo_in_what_their_papers_changed():
    agent = TrainReinforce("X").agent
    assert (agent.gae_lambda, agent.normalize_advantages, agent.n_epochs) == (1.0, False, 1)
    assert (TrainC51("X").agent.values, TrainQRDQN("X").agent.values) == ("bins", "quantiles")
    assert (TrainDDPG("X").agent.num_critics, TrainTD3("X").agent.num_critics) == (1, 2)


def test_a_training_that_ends_before_learning_begins_is_warned_of(tmp_path, capsys):
    arguments = ["--total-steps", 5, "--eval-every", 5, "--eval-episodes", 1, "--run-dir", tmp_path / "w"]
    assert run("train", "dqn", "cli.envs:Strip-v0", *arguments) == 0
    assert "nothing can be learned in 5 steps: the first update comes after 1,000" in capsys.readouterr().err


def test_ctrl_c_while_triax_is_loaded_ends_the_command():
    raised = "import signal, sys; sys.modules['flax']; signal.raise_signal(signal.SIGINT)"
    script = f"""
import sys, triax_command
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "triax.cli":
            {raised}
sys.meta_path.insert(0, Finder())
sys.argv = ["triax", "list"]
triax_command.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr == "triax: interrupted\n"


class CountingLoop:
    """Steps that cost nothing; three to an advance."""

    goal, keeps_environments, step = None, True, 0

    def begin(self, should_stop):
        pass

    def advance(self, until, tick):
        for _ in range(3):
            self.step += 10
            tick(self.step)
        return {"loss": 0.0}

    def evaluate(self):
        return np.zeros(2)

    def agent_state(self):
        return {"w": np.zeros(1)}

    def state_dict(self):
        return {"scalars": {}, "arrays": {}}

    def close(self):
        pass


@pytest.mark.parametrize(("algorithm", "first"), [("ppo", 30), ("c51", 60)])
def test_no_speed_or_time_left_is_told_before_learning_was_compiled(algorithm, first, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loop_training, "Progress", functools.partial(loop_training.Progress, plain_interval=0))
    monkeypatch.setattr(loop_training, "_make_loop", lambda *arguments: CountingLoop())
    arguments = ["train", algorithm, "cli.envs:Strip-v0", *TINY, "--total-steps", "120", "--run-dir", tmp_path / "run"]
    arguments += {"ppo": [], "c51": ["--warm-up", "40"]}[algorithm]
    assert run(*arguments) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "steps/s" in line]
    steps = [int(line.split(": ")[1].split()[0]) for line in lines]
    assert any(step <= first for step in steps)
    for step, line in zip(steps, lines, strict=True):
        assert ("- steps/s" in line) == (step <= first) and not ("left" in line and step <= first), line
    assert any("left" in line for line in lines), "later it is told"


def test_the_speed_of_dqn_is_told_once_it_has_learned():
    env = TrainMonitor(Strip())
    progress = Progress(100)
    show = host_training._show_in(progress, env)
    assert not progress.compiled
    for metrics, compiled in [(None, False), ({"loss": 0.0}, True), (None, True)]:
        show(Progressed(step=1, episode_ended=False, metrics=metrics))
        assert progress.compiled is compiled
