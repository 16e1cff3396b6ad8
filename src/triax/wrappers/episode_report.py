"""What is told about a finished episode: a line of the log, and TensorBoard scalars and histograms."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter


def is_headline(name: str) -> bool:
    """Whether a metric is among the few that a log line shows: losses, entropies, divergences, throughput."""
    return name.endswith(("/loss", "/entropy", "/kl_div")) or name.startswith("throughput/")


def format_line(counters: Mapping[str, int | float], metrics: Mapping[str, float]) -> str:
    """One line: ``ep, T, G, avg_r, avg_G, t, dt`` of the counters, then the metrics."""
    parts = [f"{name}: {counters[name]:,}" for name in ("ep", "T")]
    parts += [f"{name}: {counters[name]:.3g}" for name in ("G", "avg_r", "avg_G")]
    parts += [f"t: {counters['t']:,}", f"dt: {counters['dt_ms']:.3f}ms"]
    parts += [f"{name}: {value:.3g}" for name, value in metrics.items()]
    return ",\t".join(parts)


def write_actions(writer: "SummaryWriter", step: int, actions: Iterable[Any]) -> None:
    """Writes the histogram ``actions``; of a composite action one per leaf, ``actions/<path>``.

    Leaves that are no numbers (of a ``Text`` space) are left out.
    """
    leaves = defaultdict(list)
    for action in actions:
        for path, leaf in jax.tree_util.tree_leaves_with_path(action):
            leaves[jax.tree_util.keystr(path, simple=True, separator="/")].append(np.ravel(leaf))
    for path, values in leaves.items():
        together = np.concatenate(values)
        if np.issubdtype(together.dtype, np.number) or together.dtype == bool:
            writer.add_histogram(f"actions/{path}" if path else "actions", together.astype(float), step)
