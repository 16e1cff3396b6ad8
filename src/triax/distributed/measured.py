"""What a distributed run measures between two reports."""

import time

import numpy as np

from triax.distributed.learner_role import Learned
from triax.distributed.rollout_role import Gathered


class Measured:
    """Sums since the last report; ``steps`` and ``updates`` are those so far."""

    def __init__(self, steps: int, updates: int) -> None:
        self._began, self._steps, self._updates = time.monotonic(), steps, updates
        self._clear()

    def gathered(self, gathered: Gathered) -> None:
        """Take in what a worker did."""
        self._returns += gathered.returns
        self._lengths += gathered.lengths

    def learned(self, learned: Learned) -> None:
        """Take in what the learner did."""
        for name, value in learned.metrics.items():
            self._metrics.setdefault(name, []).append(value)

    def report(self, steps: int, updates: int) -> dict[str, float]:
        """Means, and speeds since the last report; of episodes NaN if none ended. Begins anew."""
        now = time.monotonic()
        seconds = max(now - self._began, 1e-9)
        speeds = {
            "distributed/steps_per_second": (steps - self._steps) / seconds,
            "distributed/updates_per_second": (updates - self._updates) / seconds,
        }
        count = len(self._returns)
        mean_return, mean_length = (float(np.mean(x)) if count else np.nan for x in (self._returns, self._lengths))
        found = {"episodes": float(count), "return": mean_return, "length": mean_length}
        means = {name: float(np.mean(values)) for name, values in self._metrics.items()}
        self._began, self._steps, self._updates = now, steps, updates
        self._clear()
        return means | found | speeds

    def _clear(self) -> None:
        self._returns: list[float] = []
        self._lengths: list[int] = []
        self._metrics: dict[str, list[float]] = {}
