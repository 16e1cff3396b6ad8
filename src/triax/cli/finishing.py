"""What is left at the end of a session of a run."""

from pathlib import Path
from typing import Any

from jaxtyping import PyTree

from triax.cli.evaluation import MEAN
from triax.runs import Run

_CURVES = {"episode/return", MEAN}


def finish(run: Run, config: Any, step: int, weights: PyTree, *, stopped: bool) -> Path | None:
    """Leave weights, learning curve and record; the picture's path, ``None`` where there is nothing to draw."""
    run.checkpoints.save(step, weights)
    drawable = _CURVES & set(run.read_metrics().names())
    curve = run.write_learning_curve(title=curve_title(config)) if drawable else None
    run.record_progress(step, "stopped" if stopped else "finished")
    return curve


def curve_title(config: Any) -> str:
    """What stands above the learning curve."""
    seeds = getattr(config, "seeds", 1)
    seed = f"seed {config.seed}" if seeds == 1 else f"mean of seeds {config.seed} to {config.seed + seeds - 1}"
    return f"{config.algorithm} on {config.env}, {seed}"
