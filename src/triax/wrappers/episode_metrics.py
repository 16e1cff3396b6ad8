"""Averages of metrics over an episode, without waiting for the device."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

_PENDING = 1024
"""How many records are held at most before the older ones are folded into sums: bounds the memory."""

_RECENT = 64
"""How many of the latest records stay unread then: they may still be computed."""


def check_scalars(who: str, metrics: Any) -> None:
    """``TypeError`` unless a mapping of names to numbers or scalar arrays; looks at no value."""
    if not isinstance(metrics, Mapping):
        raise TypeError(f"{who}: expected a mapping of names to scalars, got {type(metrics).__name__}.")
    for name, value in metrics.items():
        if getattr(value, "shape", ()) != () or not hasattr(value, "__float__"):
            what = f"shape {value.shape}" if hasattr(value, "shape") else type(value).__name__
            raise TypeError(f"{who}: metric {name!r} must be a scalar, got {what}.")


class EpisodeMetrics:
    """Averages of the values recorded under each name.

    Device arrays are kept as they are and fetched together when the averages are read; of more than 1024
    records, all but the latest 64 are fetched at once.
    """

    def __init__(self):
        self._pending: list[dict[str, Any]] = []
        self._sums: dict[str, tuple[float, int]] = {}

    def record(self, metrics: Mapping[str, Any]) -> None:
        """Adds one value per name: numbers or scalar arrays. ``TypeError`` for anything else."""
        check_scalars("record_metrics", metrics)
        self._pending.append(dict(metrics))
        if len(self._pending) > _PENDING:
            self._fold(len(self._pending) - _RECENT)

    def averages(self) -> dict[str, float]:
        """The mean of each metric since the last ``clear``; waits for the device."""
        self._fold(len(self._pending))
        return {name: total / count for name, (total, count) in self._sums.items()}

    def clear(self) -> None:
        """Forgets all values, unread ones included."""
        self._pending = []
        self._sums = {}

    def get_state(self) -> dict[str, list[int | float]]:
        """Sum and count by name, as plain numbers; waits for the device."""
        self._fold(len(self._pending))
        return {name: [total, count] for name, (total, count) in self._sums.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from what ``get_state`` gave."""
        sums = {str(name): (float(total), int(count)) for name, (total, count) in state.items()}
        self.clear()
        self._sums = sums

    def _fold(self, count: int) -> None:
        records = self._pending[:count]
        if jax.default_backend() != "cpu":  # lets the copies overlap; on the CPU it costs more than it saves
            records = jax.device_get(records)
        for metrics in records:
            for name, value in metrics.items():
                total, seen = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + float(np.asarray(value)), seen + 1)
        del self._pending[:count]

    def __getstate__(self) -> dict[str, Any]:
        return {"_pending": [], "_sums": {name: tuple(pair) for name, pair in self.get_state().items()}}
