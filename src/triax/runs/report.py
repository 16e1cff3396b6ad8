"""All of a run on one page: what it was, what it measured, how it looks, and with which versions."""

import os
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import numpy as np

from triax.pictures import Curve, draw_learning_curves, new_axes
from triax.pictures.style import BLUE, INK, dress, new_figure, picture_bytes, put_legend_below, title_axes
from triax.runs.learning_curve import draw_run
from triax.runs.metrics_file import MetricsLog
from triax.runs.run_directory import REPORT, Run
from triax.runs.series import EPISODES, EVALUATIONS, EVALUATIONS_STD, common_metric, describe_metric, read_series
from triax.runs.web_page import element, film, picture, section, table, web_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ABREAST = 3


def write_report(run: Run, path: str | os.PathLike | None = None) -> Path:
    """Writes a page of one HTML file, which needs no network, and returns where.

    It has the learning curve (of several seeds with their spread), the evaluations, the other metrics, the video if
    there is one (see :attr:`Run.video`), the config, each session, and the versions of the packages.

    Args:
        run: any run, finished or not.
        path: the file; default ``report.html`` in the run's directory. Readers see the old one or all of the new one.
    """
    path = run.path / REPORT if path is None else Path(path)
    page = report_page(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(page, encoding="utf-8")
    os.replace(temporary, path)
    return path


def report_page(run: Run) -> str:
    """The page as HTML: see :func:`write_report`."""
    config = run.read_config()
    fields = config if isinstance(config, dict) else {"config": config}
    log = run.read_metrics() if run.has_metrics else MetricsLog([], 0, 0)
    title = " on ".join(str(fields[name]) for name in ("algorithm", "env") if name in fields) or run.path.name
    return web_page(
        title,
        element("h1", title),
        *_summary(run, log),
        *_curve(run, log),
        *_evaluations(log),
        *_video(run),
        *_other_metrics(log),
        section("Config", table((name, _said(value)) for name, value in _flat(fields))),
        *_sessions(run),
        section("Versions", table(run.versions.items())),
    )


def _summary(run: Run, log: MetricsLog) -> Iterator[Element]:
    record = run.record
    done = max([record.step, *(row["step"] for row in log.rows)])
    planned = f" of {record.total_steps:,}" if record.total_steps else ""
    spent = f" in {timedelta(seconds=round(record.seconds))}" if record.seconds else ""
    yield element("p", f"{record.state.capitalize()} after {done:,}{planned} steps{spent}.")
    yield element("p", f"{run.path.resolve()}, reported {time.strftime('%Y-%m-%d %H:%M')}", class_="quiet")


def _curve(run: Run, log: MetricsLog) -> Iterator[Element]:
    parts = [Run.open(path) for path in run.parts()]
    axes = new_axes()
    if len(parts) > 1:
        metric = common_metric(parts)
        drawn = Curve("mean over seeds", [read_series(part, metric) for part in parts])
        draw_learning_curves(axes, [drawn], ylabel=describe_metric(metric))
    elif {EPISODES, EVALUATIONS} & set(log.names()):
        draw_run(axes, log)
    else:
        yield section(
            "Learning curve", element("p", "No episode has ended, and nothing was evaluated.", class_="quiet")
        )
        return
    put_legend_below(axes)
    yield section("Learning curve", picture(picture_bytes(axes), ".svg", "return over environment steps"))


def _evaluations(log: MetricsLog) -> Iterator[Element]:
    steps, means = log.series(EVALUATIONS)
    if not len(steps):
        return
    stds = dict(zip(*(column.tolist() for column in log.series(EVALUATIONS_STD)), strict=True))
    best = int(np.argmax(np.where(np.isnan(means), -np.inf, means)))
    rows = [
        (f"{step:,}", f"{mean:.2f}", f"{stds[step]:.2f}" if step in stds else "-")
        for step, mean in zip(steps.tolist(), means.tolist(), strict=True)
    ]
    best_of_all = f"Best mean return {means[best]:.2f} at step {steps[best]:,}; last {means[-1]:.2f}."
    told = table(rows, columns=("step", "mean return", "deviation"), numbers=True, best=best)
    yield section(
        "Evaluation",
        element("p", best_of_all),
        element("details", element("summary", f"All {len(rows)} evaluations"), told),
    )


def _video(run: Run) -> Iterator[Element]:
    path = run.video
    if path is not None:
        yield section("Video", film(path), element("p", path.name, class_="quiet"))


def _other_metrics(log: MetricsLog) -> Iterator[Element]:
    names = [name for name in log.names() if name not in (EPISODES, EVALUATIONS, EVALUATIONS_STD)]
    series = {name: log.series(name) for name in names}
    series = {name: (x, y) for name, (x, y) in series.items() if np.isfinite(y).any()}
    if not series:
        return
    lines = -(-len(series) // _ABREAST)
    grid = new_figure(9.0, 1.9 * lines).subplots(lines, _ABREAST, squeeze=False).ravel()
    for axes in grid[len(series) :]:
        axes.set_axis_off()
    for axes, (name, (steps, values)) in zip(grid, series.items(), strict=False):
        _draw_metric(axes, name, steps, values)
    yield section("Other metrics", picture(picture_bytes(grid[0]), ".svg", ", ".join(series)))


def _draw_metric(axes: "Axes", name: str, steps: np.ndarray, values: np.ndarray) -> None:
    dress(axes, ylabel="")
    title_axes(axes, name, size=8)
    axes.set_xlabel("")
    axes.tick_params(labelsize=7, labelcolor=INK)
    axes.plot(steps, values, color=BLUE, linewidth=0.9, marker="." if len(steps) == 1 else None)


def _sessions(run: Run) -> Iterator[Element]:
    rows = [
        (
            f"{s.from_step:,}",
            f"{s.total_steps:,}",
            _said(s.stop_at),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(s.began)),
        )
        for s in run.record.sessions
    ]
    if rows:
        yield section("Sessions", table(rows, columns=("from step", "to step", "goal", "began")))


def _flat(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Fields by their dotted names; of a dataclass without its class."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif name != "class":
            yield f"{prefix}{name}", value


def _said(value: Any) -> str:
    if value is None:
        return "-"
    return ", ".join(map(_said, value)) if isinstance(value, list | tuple) else str(value)
