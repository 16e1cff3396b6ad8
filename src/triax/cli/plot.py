"""``triax plot``: runs side by side, those that differ only in their seed as one curve."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from triax.cli.commands import PlotRuns
from triax.runs import Curve, Run, RunSeries, describe_spread, plot_comparison, summarize
from triax.runs.series import common_metric, describe_metric, read_series

_NO_BEARING = {"class", "seed", "seeds", "run_dir", "overwrite", "wandb", "checkpoint_every"}
"""What of a config does not make another curve."""


class _Measured(NamedTuple):
    """A run as it is drawn."""

    config: dict[str, Any]
    series: RunSeries


def plot_runs(command: PlotRuns) -> int:
    """Draw the picture, and print where it is and where each curve ends; the exit code."""
    paths = tuple(dict.fromkeys(part for path in command.runs for part in Run.open(path).parts()))
    metric = command.metric or common_metric([Run.open(path) for path in paths])
    measured = [_measure(path, metric) for path in paths]
    groups: dict[str, list[_Measured]] = {}
    for one in measured:
        groups.setdefault(repr(sorted(one.config.items())), []).append(one)
    configs = [group[0].config for group in groups.values()]
    labels = _labels(configs)
    curves = [Curve(label, [one.series for one in group]) for label, group in zip(labels, groups.values(), strict=True)]
    title = _title(configs)
    plot_comparison(curves, command.out, title=title, ylabel=describe_metric(metric), spread=command.spread)
    for curve in curves:
        print(_end_of(curve, command))
    print(f"Picture: {command.out}  ({describe_metric(metric)}; band: {describe_spread(command.spread)} over seeds)")
    return 0


def _measure(path: Path, metric: str) -> _Measured:
    run = Run.open(path)
    return _Measured(_flat(run.read_config()), read_series(run, metric))


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Fields by their dotted names, without those that have no bearing on what is learned."""
    fields: dict[str, Any] = {}
    for name, value in config.items():
        if name in _NO_BEARING:
            continue
        inner = _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
        fields.update(inner)
    return fields


def _labels(configs: list[dict[str, Any]]) -> list[str]:
    """What sets each config apart from the others: what all have and differ in, then what only some have."""
    names = list(dict.fromkeys(name for config in configs for name in config))
    shared = [name for name in names if all(name in config for config in configs)]
    differing = [name for name in shared if len({repr(config[name]) for config in configs}) > 1]
    labels = [", ".join(_named(name, config[name]) for name in differing) for config in configs]
    if len(set(labels)) < len(labels):
        others = [name for name in names if name not in shared]
        labels = [
            ", ".join(filter(None, [label, *(_named(name, config[name]) for name in others if name in config)]))
            for label, config in zip(labels, configs, strict=True)
        ]
    return [label or _title([config]) for label, config in zip(labels, configs, strict=True)]


def _named(name: str, value: Any) -> str:
    if name in ("algorithm", "env"):
        return str(value)
    return f"{name.rpartition('.')[2]}={value}"


def _title(configs: list[dict[str, Any]]) -> str:
    """What all have in common of algorithm and environment."""
    found = [{str(config.get(name)) for config in configs} for name in ("algorithm", "env")]
    return " on ".join(values.pop() for values in found if len(values) == 1)


def _end_of(curve: Curve, command: PlotRuns) -> str:
    steps, mean, low, high = summarize(curve.runs, command.spread)
    count = f"{len(curve.runs)} run{'s' if len(curve.runs) > 1 else ''}"
    if not len(steps):
        return f"{curve.label}: {count}, which have no step in common"
    band = f" ({low[-1]:.1f} to {high[-1]:.1f})" if len(curve.runs) > 1 else ""
    return f"{curve.label}: {count}, {mean[-1]:.1f}{band} at step {steps[-1]:,.0f}"
