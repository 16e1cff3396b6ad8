"""Learning curves: one for runs that differ only in their seed, with the spread over them as a band."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Num

from triax.pictures.style import PALETTE, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spread = Literal["bootstrap", "std", "range"]
_SAID = {
    "bootstrap": "95 % bootstrap interval of the mean",
    "std": "one standard deviation",
    "range": "least to greatest",
}
_RESAMPLES = 2000


class RunSeries(NamedTuple):
    """What one run measured: finite values at ascending steps."""

    steps: Num[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]


class Curve(NamedTuple):
    """Runs that differ only in their seed."""

    label: str
    runs: Sequence[RunSeries]


class Summary(NamedTuple):
    """A curve at the steps that all its runs have reached; empty where no step is common to all."""

    steps: Float[np.ndarray, " m"]
    mean: Float[np.ndarray, " m"]
    low: Float[np.ndarray, " m"]
    high: Float[np.ndarray, " m"]


def summarize(runs: Sequence[RunSeries], spread: Spread = "bootstrap") -> Summary:
    """Mean and spread over runs, each interpolated linearly to the steps of all within what they have in common.

    ``"bootstrap"``: 2.5th and 97.5th percentile of the means of 2000 resamples of the runs; ``"std"``: mean minus and
    plus the standard deviation over runs (of a sample, ``ddof=1``); ``"range"``: minimum and maximum.
    """
    first, last = max(run.steps[0] for run in runs), min(run.steps[-1] for run in runs)
    steps = np.unique(np.concatenate([run.steps for run in runs])).astype(float)
    steps = steps[(steps >= first) & (steps <= last)]
    values = np.array([np.interp(steps, run.steps, run.values) for run in runs])
    return Summary(steps, values.mean(axis=0), *_bounds(values, spread))


def draw_learning_curves(
    axes: "Axes",
    curves: Sequence[Curve],
    *,
    title: str = "",
    ylabel: str = "return",
    spread: Spread = "bootstrap",
) -> None:
    """Draws each curve's mean and spread over seeds (see :func:`summarize`), and its single runs as thin lines.

    Everything has a label: ``axes.legend()`` shows them.
    """
    for number, curve in enumerate(curves):
        _draw(axes, curve, PALETTE[number % len(PALETTE)], spread, dashed=number >= len(PALETTE))
    if any(len(curve.runs) > 1 for curve in curves):
        axes.fill_between([], [], [], color="grey", alpha=0.3, linewidth=0, label=describe_spread(spread))
        axes.plot([], [], color="grey", linewidth=0.7, alpha=0.5, label="single runs")
    dress(axes, title=title, ylabel=ylabel)


def describe_spread(spread: Spread) -> str:
    """What the band of a curve is, in words."""
    return _SAID[spread]


def _bounds(values: Float[np.ndarray, "runs m"], spread: Spread) -> Float[np.ndarray, "2 m"]:
    if len(values) == 1 or values.shape[1] == 0:
        return np.stack([values.mean(axis=0)] * 2)
    if spread == "range":
        return np.stack([values.min(axis=0), values.max(axis=0)])
    if spread == "std":
        deviation = values.std(axis=0, ddof=1)
        return values.mean(axis=0) + np.stack([-deviation, deviation])
    # Counts of a resample are multinomial: one product of matrices gives all their means.
    counts = np.random.default_rng(0).multinomial(len(values), [1 / len(values)] * len(values), _RESAMPLES)
    return np.percentile(counts @ values / len(values), (2.5, 97.5), axis=0)


def _draw(axes: "Axes", curve: Curve, colour: str, spread: Spread, *, dashed: bool) -> None:
    count = len(curve.runs)
    label = f"{curve.label} ({count} runs)" if count > 1 else curve.label
    style = "--" if dashed else "-"
    if count > 1:
        for run in curve.runs:
            axes.plot(run.steps, run.values, color=colour, linewidth=0.7, alpha=0.35)
    steps, mean, low, high = summarize(curve.runs, spread)
    if count > 1:
        axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    marker = "o" if len(steps) == 1 else None
    axes.plot(steps, mean, color=colour, linewidth=1.8, linestyle=style, marker=marker, label=label)
