"""The picture of a run: returns over steps, with a running mean, a band, and evaluations."""

import os
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from triax.pictures import new_axes, write_picture
from triax.pictures.style import BLUE, ORANGE, dress, put_legend_below
from triax.runs.metrics_file import MetricsLog

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLACES = 400
_DOTS = 3000


def plot_learning_curve(
    log: MetricsLog,
    path: str | os.PathLike,
    *,
    episode_metric: str = "episode/return",
    evaluation_metric: str = "eval/episode_reward",
    window: int | float | None = None,
    title: str = "",
) -> None:
    """Writes what :func:`draw_run` draws, with a legend.

    Args:
        log: what ``read_metrics`` gave.
        path: the picture to write: ``.png``, ``.svg`` or ``.pdf``.
        episode_metric: as in :func:`draw_run`.
        evaluation_metric: as in :func:`draw_run`.
        window: as in :func:`draw_run`.
        title: above the picture.

    Raises ``ValueError`` when the log has neither metric, or for another suffix. The pyplot state and the backend of
    matplotlib are not touched.
    """
    axes = new_axes()
    draw_run(axes, log, episode_metric=episode_metric, evaluation_metric=evaluation_metric, window=window, title=title)
    put_legend_below(axes)
    write_picture(axes, path)


def draw_run(
    axes: "Axes",
    log: MetricsLog,
    *,
    episode_metric: str = "episode/return",
    evaluation_metric: str = "eval/episode_reward",
    window: int | float | None = None,
    title: str = "",
) -> None:
    """Draws the return of one run over its steps.

    Args:
        axes: where to.
        log: what ``read_metrics`` gave.
        episode_metric: the return of each training episode: dots, their running mean, and a band between the
            10th and 90th percentile of the same episodes.
        evaluation_metric: evaluations: ``<name>/mean`` (or ``<name>``) as points, ``<name>/std`` as bars.
        window: over how many steps, centred, mean and band are taken; ``None`` is a twentieth of the run. At
            least five episodes are.
        title: above the picture.

    Raises ``ValueError`` when the log has neither metric. Everything has a label: ``axes.legend()`` shows them.
    """
    steps, returns = log.series(episode_metric)
    mean_name = next((name for name in (f"{evaluation_metric}/mean", evaluation_metric) if _has(log, name)), None)
    if not len(steps) and mean_name is None:
        raise ValueError(
            f"draw_run: expected the metric {episode_metric!r} or {evaluation_metric!r}; the log has {log.names()}."
        )
    if len(steps):
        _draw_episodes(axes, steps, returns, window)
    if mean_name is not None:
        _draw_evaluations(axes, log, mean_name, f"{evaluation_metric}/std")
    dress(axes, title=title)


def running_statistics(
    steps: Int[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    places: Float[np.ndarray, " m"],
    window: int | float,
) -> Float[np.ndarray, "m 3"]:
    """Mean, 10th and 90th percentile of the values at ascending steps within ``window / 2`` of each place.

    Where there are fewer than five, the five nearest in order are taken. Values that are not finite are left
    out; where no others are, the statistics are NaN.
    """
    first = np.searchsorted(steps, places - window / 2, "left")
    last = np.searchsorted(steps, places + window / 2, "right")
    lacking = np.maximum(5 - (last - first), 0)
    first = np.clip(first - (lacking + 1) // 2, 0, max(len(steps) - 5, 0))
    last = np.maximum(last, np.minimum(first + 5, len(steps)))
    return np.array([_statistics(values[i:j]) for i, j in zip(first, last, strict=True)])


def _statistics(values: np.ndarray) -> tuple[float, float, float]:
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan, np.nan
    low, high = np.percentile(values, (10, 90))
    return values.mean(), low, high


def _draw_episodes(axes: "Axes", steps: np.ndarray, returns: np.ndarray, window: int | float | None) -> None:
    order = np.argsort(steps, kind="stable")
    steps, returns = steps[order], returns[order]
    width = float(steps[-1] - steps[0]) / 20 if window is None else window
    every = -(-len(steps) // _DOTS)
    size = float(np.clip(200 / np.sqrt(len(steps)), 3, 16))
    axes.scatter(steps[::every], returns[::every], s=size, color=BLUE, alpha=0.25, linewidths=0, label="episodes")
    places = np.linspace(steps[0], steps[-1], _PLACES) if len(steps) > _PLACES else steps.astype(float)
    mean, low, high = running_statistics(steps, returns, places, width).T
    axes.fill_between(places, low, high, color=BLUE, alpha=0.16, linewidth=0, label="10-90 % of them")
    axes.plot(places, mean, color=BLUE, linewidth=1.8, label="their running mean")


def _draw_evaluations(axes: "Axes", log: MetricsLog, mean_name: str, std_name: str) -> None:
    steps, means = log.series(mean_name)
    spread_at = dict(zip(*(column.tolist() for column in log.series(std_name)), strict=True))
    spread = np.array([spread_at.get(step, 0.0) for step in steps.tolist()])
    axes.errorbar(
        steps, means, yerr=spread if spread_at else None, color=ORANGE, linewidth=1.0, elinewidth=1.0,
        marker="o", markersize=5, markeredgecolor="white", markeredgewidth=0.8, capsize=0, zorder=4,
        label="evaluation, mean and deviation" if spread_at else "evaluation",
    )  # fmt: skip


def _has(log: MetricsLog, name: str) -> bool:
    return any(name in row for row in log.rows)
