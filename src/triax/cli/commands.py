"""The commands of ``triax`` and what each takes."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

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
    checkpoint_every: float = 15.0
    """Seconds between states to resume from, at least; each is taken when an episode ends."""
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
        _check_stop_at(self.stop_at)
        if not self.checkpoint_every >= 0:
            raise ValueError(f"checkpoint_every must be at least 0; got {self.checkpoint_every}.")


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
class ResumeRun:
    """Go on with a run that was stopped or killed, bit for bit as if it had not been, or train a finished one longer.

    It goes on from the last state that was saved; what was logged after that is done again.
    """

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The directory of the run."""
    steps: int | None = None
    """Train up to this step, earlier ones included; by default as far as was planned. Schedules stay as they are."""
    stop_at: float | None = None
    """Stop when an evaluation reaches this mean return, inf for never; by default as was planned."""

    def __post_init__(self) -> None:
        if self.steps is not None:
            _check_positive("steps", self.steps)
        _check_stop_at(self.stop_at)


@dataclass(frozen=True)
class MakeVideo:
    """Film episodes of the greedy policy of a run, and print their returns and lengths."""

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The directory of the run."""
    out: Path | None = None
    """The file: .mp4, which needs triax[video], or .gif; by default video.mp4 in the run's directory."""
    episodes: int = 1
    """How many episodes."""
    seed: int = 1_000_000
    """Of the episodes."""
    max_steps: int = 10_000
    """Episodes are cut off after this many steps."""
    last: bool = False
    """Take the weights at the end of training instead of the best ones."""

    def __post_init__(self) -> None:
        _check_positive("episodes", self.episodes)
        _check_positive("max_steps", self.max_steps)
        _check_seed(self.seed)


@dataclass(frozen=True)
class PlotRuns:
    """Draw learning curves over environment steps; runs that differ only in their seed become one, with its spread."""

    runs: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN...")]]
    """The directories of the runs."""
    out: Path = Path("learning-curves.png")
    """The picture: .png, .svg or .pdf."""
    metric: str | None = None
    """What is drawn; by default the mean return of evaluations, or of training episodes if a run has none."""
    spread: Literal["bootstrap", "std", "range"] = "bootstrap"
    """Over seeds: a 95 % interval of the mean, one standard deviation, or from the least to the greatest."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs must be at least one.")


@dataclass(frozen=True)
class ListRuns:
    """List the algorithms, and the runs below a directory with how far they came."""

    directory: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR")]] = Path("runs")
    """Where to look for runs."""


Command = Train | ResumeRun | Evaluate | MakeVideo | PlotRuns | ListRuns


@dataclass(frozen=True)
class Arguments:
    """Reinforcement learning on JAX: train agents, resume, evaluate, film and compare them."""

    triax: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[Train, tyro.conf.subcommand("train")]
            | Annotated[ResumeRun, tyro.conf.subcommand("resume")]
            | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
            | Annotated[MakeVideo, tyro.conf.subcommand("video")]
            | Annotated[PlotRuns, tyro.conf.subcommand("plot")]
            | Annotated[ListRuns, tyro.conf.subcommand("list")]
        ]
    ]
    version: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the version and exit."""


def _check_stop_at(stop_at: float | None) -> None:
    if stop_at is not None and math.isnan(stop_at):
        raise ValueError("stop_at must be a number; got nan.")


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1; got {value}.")


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed must be in [0, 2^31); got {seed}.")
