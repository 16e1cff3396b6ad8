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

    env: tyro.conf.Positional[str]
    """Gymnasium id, e.g. CartPole-v1."""
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
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}.")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be in [0, 2^31); got {self.seed}.")
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

    run: tyro.conf.Positional[Path]
    """The directory of the run."""
    episodes: int = 20
    """How many episodes."""
    seed: int = 1_000_000
    """Of the episodes."""
    last: bool = False
    """Take the weights at the end of training instead of the best ones."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ValueError(f"episodes must be at least 1; got {self.episodes}.")


Command = Annotated[Train, tyro.conf.subcommand("train")] | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
