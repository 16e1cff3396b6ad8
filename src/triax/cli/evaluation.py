"""Evaluations of a run: logged, and the weights of the best one kept."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, PyTree

from triax.runs import Run

MEAN, STD = "eval/episode_reward/mean", "eval/episode_reward/std"


class EvaluationLog:
    """What the evaluations of one run were like; ``best`` is minus infinity without any."""

    def __init__(self, run: Run) -> None:
        self._run = run
        kept = run.best.latest_step()
        self.best: float = -math.inf if kept is None else run.best.load_metadata()["eval_mean"]

    def add(self, step: int, returns: Float[np.ndarray, " n"], weights: Callable[[], PyTree]) -> float:
        """Log the returns, keep the weights if their mean is the best so far; the mean."""
        mean = float(returns.mean())
        self._run.log(step, {MEAN: mean, STD: float(returns.std())})
        if mean > self.best:
            self.best = mean
            self._run.best.save(step, weights(), {"eval_mean": mean})
        return mean
