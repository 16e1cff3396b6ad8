"""The commands of ``triax`` and what each takes."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from triax.agents import DQNConfig


@dataclass(frozen=True)
class TrainDQN:
    """Train DQN on a Gymnasium environment with Discrete actions. Ctrl-C stops and keeps what was learned."""

    env: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="ENV")]]
    """Gymnasium id, e.g. CartPole-v1; module:Name-v0 imports the module that registers it."""
    seed: int = 0
    """Decides everything that is random."""
    total_steps: int = 100_000
    """Steps to train for."""
    eval_every: int = 2_500
    """Steps between evaluations of the greedy policy; the best one is kept."""
    eval_episodes: int = 20
    """Episodes of each evaluation."""
    stop_at: float | None = None
    """Stop when an evaluation reaches this mean return; by default the reward threshold of the environment."""
    run_dir: Path | None = None
    """Where the run goes; by default runs/dqn-ENV-SEED."""
    overwrite: bool = False
    """Replace an earlier run in the same directory."""
    agent: tyro.conf.OmitArgPrefixes[DQNConfig] = field(default_factory=DQNConfig)
    """How DQN learns."""

    algorithm: tyro.conf.Suppress[str] = "dqn"

    def __post_init__(self) -> None:
        for name in ("total_steps", "eval_every", "eval_episodes"):
            _check_positive(name, getattr(self, name))
        _check_seed(self.seed)
        if self.stop_at is not None and math.isnan(self.stop_at):
            raise ValueError("stop_at must be a number; got nan.")


@dataclass(frozen=True)
class Train:
    """Train an agent; leaves a run directory with config, metrics, learning curve and weights."""

    algorithm: tyro.conf.OmitArgPrefixes[
        Annotated[TrainDQN, tyro.conf.subcommand("dqn", prefix_name=False)] | Annotated[None, tyro.conf.Suppress]
    ]


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with the greedy policy of a run, and print mean and spread of their returns."""

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The directory of the run."""
    episodes: int = 20
    """How many episodes."""
    seed: int = 1_000_000
    """Of the episodes."""
    last: bool = False
    """Take the weights at the end of training instead of the best ones."""

    def __post_init__(self) -> None:
        _check_positive("episodes", self.episodes)
        _check_seed(self.seed)


@dataclass(frozen=True)
class Arguments:
    """Reinforcement learning on JAX: train an agent, evaluate what it has learned."""

    triax: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[Train, tyro.conf.subcommand("train")] | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
        ]
    ]
    version: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the version and exit."""


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1; got {value}.")


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed must be in [0, 2^31); got {seed}.")
