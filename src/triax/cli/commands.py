"""The commands of ``triax`` and what each takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from triax.cli.numbers import check_positive, check_seed, check_stop_at
from triax.cli.train_commands import (
    TrainA2C,
    TrainC51,
    TrainDDPG,
    TrainDQN,
    TrainPPO,
    TrainQLearning,
    TrainQRDQN,
    TrainReinforce,
    TrainSAC,
    TrainTD3,
)


@dataclass(frozen=True)
class Train:
    """Train an agent; leaves a run directory with config, metrics, learning curve and weights."""

    algorithm: tyro.conf.OmitArgPrefixes[
        Annotated[TrainDQN, tyro.conf.subcommand("dqn", prefix_name=False)]
        | Annotated[TrainQLearning, tyro.conf.subcommand("q-learning", prefix_name=False)]
        | Annotated[TrainQRDQN, tyro.conf.subcommand("qr-dqn", prefix_name=False)]
        | Annotated[TrainC51, tyro.conf.subcommand("c51", prefix_name=False)]
        | Annotated[TrainSAC, tyro.conf.subcommand("sac", prefix_name=False)]
        | Annotated[TrainTD3, tyro.conf.subcommand("td3", prefix_name=False)]
        | Annotated[TrainDDPG, tyro.conf.subcommand("ddpg", prefix_name=False)]
        | Annotated[TrainPPO, tyro.conf.subcommand("ppo", prefix_name=False)]
        | Annotated[TrainA2C, tyro.conf.subcommand("a2c", prefix_name=False)]
        | Annotated[TrainReinforce, tyro.conf.subcommand("reinforce", prefix_name=False)]
        | Annotated[None, tyro.conf.Suppress]
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
        check_positive("episodes", self.episodes)
        check_seed(self.seed)


@dataclass(frozen=True)
class ResumeRun:
    """Go on with a run that was stopped or killed, bit for bit as if it had not been, or train a finished one longer.

    It goes on from the last state that was saved; what was logged after that is done again. Gymnasium environments
    side by side cannot be saved: such a run goes on with new episodes, not bit for bit.
    """

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The directory of the run."""
    steps: int | None = None
    """Train up to this step, earlier ones included; by default as far as was planned. Schedules stay as they are."""
    stop_at: float | None = None
    """Stop when an evaluation reaches this mean return, inf for never; by default as was planned."""
    devices: int | None = None
    """Of JAX environments: over how many devices they are split from now on; by default as before."""
    workers: int | None = None
    """Of a run in many processes: how many act from now on; by default as before."""
    address: str | None = None
    """Of a run in many processes: the Ray cluster that it goes on in, or local for this machine; by default as
    before."""

    def __post_init__(self) -> None:
        for name in ("steps", "devices", "workers"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        check_stop_at(self.stop_at)


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
        check_positive("episodes", self.episodes)
        check_positive("max_steps", self.max_steps)
        check_seed(self.seed)


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
class MakeReport:
    """Put a run on one page of HTML: curves, evaluations, the video if there is one, config, versions; in one file."""

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The directory of the run."""
    out: Path | None = None
    """The file; by default report.html in the run's directory."""


@dataclass(frozen=True)
class ListRuns:
    """List the algorithms, and the runs below a directory with how far they came."""

    directory: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR")]] = Path("runs")
    """Where to look for runs."""


Command = Train | ResumeRun | Evaluate | MakeVideo | PlotRuns | MakeReport | ListRuns


@dataclass(frozen=True)
class Arguments:
    """Reinforcement learning on JAX: train agents, resume, evaluate, film, compare and report them."""

    triax: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[Train, tyro.conf.subcommand("train")]
            | Annotated[ResumeRun, tyro.conf.subcommand("resume")]
            | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
            | Annotated[MakeVideo, tyro.conf.subcommand("video")]
            | Annotated[PlotRuns, tyro.conf.subcommand("plot")]
            | Annotated[MakeReport, tyro.conf.subcommand("report")]
            | Annotated[ListRuns, tyro.conf.subcommand("list")]
        ]
    ]
    version: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the version and exit."""
