"""The run of a training, and those of its seeds if there are several."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from triax.cli.evaluation import EvaluationLog
from triax.cli.finishing import finish
from triax.cli.train_commands import TrainSideBySide
from triax.cli.training import Plan
from triax.runs import Run


class SeedRuns:
    """Takes what was measured of all seeds apart: each has a run of its own, the whole one has their mean.

    Leaves of metrics, returns and weights have an axis ``[seeds]``; for one seed they have none, and there is one run.
    """

    def __init__(self, run: Run, command: TrainSideBySide, step: int, plan: Plan) -> None:
        self.run, self._count = run, command.seeds
        self._configs = [replace(command, seed=command.seed + i, seeds=1) for i in range(self._count)]
        self._each: list[Run] = []
        if self._count > 1:
            self._each = [
                _open(path, c, step) for path, c in zip(run.seed_paths(self._seeds), self._configs, strict=True)
            ]
            for one in self._each:
                one.begin_session(step, plan.total_steps, plan.stop_at)
        self._log = EvaluationLog(run)
        self._logs = [EvaluationLog(one) for one in self._each]

    @property
    def _seeds(self) -> list[int]:
        return [config.seed for config in self._configs]

    @property
    def best(self) -> float:
        """The best mean return, over seeds too."""
        return self._log.best

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Metrics of all, and their means."""
        for i, one in enumerate(self._each):
            one.log(step, _known({name: np.asarray(value)[i] for name, value in metrics.items()}))
        self.run.log(step, _known({name: np.mean(value) for name, value in metrics.items()}))

    def evaluated(self, step: int, returns: np.ndarray, weights: PyTree) -> float:
        """Returns ``[(seeds,) episodes]``; the mean over all."""
        if not self._each:
            return self._log.add(step, returns, lambda: weights)
        for i, log in enumerate(self._logs):
            log.add(step, returns[i], lambda i=i: _row(weights, i))
        return self._log.add(step, returns.mean(axis=1), lambda: weights)

    def flush(self) -> None:
        """What was logged is on the disk."""
        for one in (self.run, *self._each):
            one.flush()

    def finish(self, step: int, weights: PyTree, *, stopped: bool) -> None:
        """Leave weights, curve and record of each seed; not of the whole."""
        for i, (one, config) in enumerate(zip(self._each, self._configs, strict=bool(self._each))):
            finish(one, config, step, _row(weights, i), stopped=stopped)

    def __enter__(self) -> "SeedRuns":
        return self

    def __exit__(self, *exception: object) -> None:
        for one in self._each:
            one.close()


def _open(path: Path, config: TrainSideBySide, step: int) -> Run:
    """As the whole run: begun at step 0, else resumed."""
    if step == 0 or not (path / "config.json").exists():
        return Run.create(path, config, overwrite=True, wandb=config.wandb)
    return Run.resume(path, step)


def _row(tree: PyTree, i: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[i], tree)


_NAMES = {"episodes": "episode/count", "return": "episode/return", "length": "episode/steps"}


def _known(metrics: Mapping[str, Any]) -> dict[str, float]:
    """By the names that pictures know; without returns where no episode ended."""
    named = {_NAMES.get(name, name): float(value) for name, value in metrics.items()}
    return {n: v for n, v in named.items() if np.isfinite(v) or n not in ("episode/return", "episode/steps")}
