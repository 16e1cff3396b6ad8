"""What a run measured over its steps, ready to be drawn beside other runs."""

from collections.abc import Sequence

import numpy as np

from triax.core.errors import TriaxError
from triax.pictures import RunSeries
from triax.runs.learning_curve import running_statistics
from triax.runs.run_directory import Run

EVALUATIONS, EVALUATIONS_STD, EPISODES = "eval/episode_reward/mean", "eval/episode_reward/std", "episode/return"
_SAID = {EVALUATIONS: "mean return of evaluations", EPISODES: "return of training episodes, smoothed"}
_PLACES = 200


class NothingToPlotError(TriaxError, ValueError):
    """A run has not measured what is to be drawn."""


def common_metric(runs: Sequence[Run]) -> str:
    """The mean return of evaluations where all runs have it, else the return of training episodes."""
    evaluated = all(EVALUATIONS in run.read_metrics().names() for run in runs)
    return EVALUATIONS if evaluated else EPISODES


def describe_metric(metric: str) -> str:
    """What it is, in words where they are known."""
    return _SAID.get(metric, metric)


def read_series(run: Run, metric: str) -> RunSeries:
    """The finite values of a metric; returns of single episodes are smoothed, over a twentieth of the run.

    ``NothingToPlotError`` where there are none.
    """
    log = run.read_metrics()
    steps, values = log.series(metric)
    finite = np.isfinite(values)
    if not finite.any():
        names = ", ".join(log.names()) or "nothing"
        raise NothingToPlotError(f"{run.path} has no values of {metric!r}; it has {names}. Try another --metric.")
    series = RunSeries(steps[finite], values[finite])
    return _smooth(series) if metric == EPISODES else series


def _smooth(series: RunSeries) -> RunSeries:
    first, last = float(series.steps[0]), float(series.steps[-1])
    places = np.linspace(first, last, _PLACES) if last > first else np.array([first])
    return RunSeries(places, running_statistics(series.steps, series.values, places, (last - first) / 20)[:, 0])
