"""Every name that a training logs is on the page about them."""

import re

import pytest

from pages import ROOT
from triax.runs import Run

from .running import run

TINY = ["--hidden", "4", "--eval-episodes", "1", "--stop-at", "inf"]
REPLAY = [
    *TINY,
    "--warm-up",
    "10",
    "--batch-size",
    "4",
    "--total-steps",
    "30",
    "--log-every",
    "10",
    "--eval-every",
    "30",
]
ROLLOUTS = [*TINY, "--num-envs", "2", "--rollout-length", "8", "--total-steps", "32", "--log-every", "16"]
ROLLOUTS += ["--eval-every", "32", "--n-minibatches", "1"]


def documented():
    """Patterns of the names in code style in the first column of the page's tables."""
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "metrics.md").read_text(), flags=re.MULTILINE)
    names = []
    for row in rows:
        for name in re.findall(r"`([^`]+)`", row):
            names.append(names[-1].rpartition("/")[0] + name if name.startswith("/") else name)
    return [re.escape(name).replace("RULE", r"\w+") for name in names]


def undocumented(path):
    names = Run.open(path).read_metrics().names()
    assert names
    return [name for name in names if not any(re.fullmatch(pattern, name) for pattern in documented())]


def test_what_dqn_logs_is_documented(strips):
    assert undocumented(strips / "b") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "env", "options"),
    [
        *((name, "cli.envs:Strip-v0", REPLAY) for name in ("q-learning", "qr-dqn", "c51", "sac")),
        *((name, "Pendulum-v1", REPLAY) for name in ("sac", "td3", "ddpg")),
        *((name, "cli.envs:Strip-v0", ROLLOUTS) for name in ("ppo", "a2c", "reinforce")),
        (
            "dqn",
            "cli.envs:Strip-v0",
            ["--hidden", "4", "--learning-starts", "8", "--batch-size", "4", "--total-steps", "40"],
        ),
    ],
)
def test_what_each_algorithm_logs_is_documented(algorithm, env, options, tmp_path):
    assert run("train", algorithm, env, *options, "--run-dir", tmp_path / "a") == 0
    assert undocumented(tmp_path / "a") == []
