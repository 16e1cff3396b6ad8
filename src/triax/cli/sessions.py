"""One session of a run, from wherever it stands to its end: what ``triax train`` and ``triax resume`` share."""

import contextlib
import math
import time
from pathlib import Path
from typing import Any

from triax.cli.finishing import finish
from triax.cli.training import Outcome, Plan, Training
from triax.runs import CleanInterrupt, Run

INTERRUPTED = 130


def complete(training: Training, run: Run, plan: Plan, interrupt: CleanInterrupt, config: Any) -> int:
    """Train, leave weights, learning curve and record, and print where; the exit code."""
    began = time.monotonic()
    with contextlib.closing(training):  # after an error too: it may have processes
        run.begin_session(training.step, plan.total_steps, plan.stop_at)
        outcome = training.run(run, plan, lambda: interrupt.requested)
        stopped = outcome.step < plan.total_steps and not outcome.reached_goal
        curve = finish(run, config, outcome.step, training.weights(), stopped=stopped)
    _report(run, outcome, time.monotonic() - began, curve, stopped=stopped)
    return INTERRUPTED if stopped else 0


def _report(run: Run, outcome: Outcome, seconds: float, curve: Path | None, *, stopped: bool) -> None:
    print(f"{'Stopped' if stopped else 'Done'} after {outcome.step:,} steps in {seconds:.0f} s.")
    if math.isfinite(outcome.best):
        episodes = f"Best mean return over {outcome.num_episodes} evaluation episodes"
        print(f"{episodes}: {outcome.best:.1f}{outcome.about_goal}")
    then = f"go on with: triax resume {run.path}" if stopped else f"evaluate with: triax evaluate {run.path}"
    print(f"Run: {run.path}  ({f'curve: {curve.name}; ' if curve else ''}{then})")
