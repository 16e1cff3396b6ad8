"""What ``triax train`` and ``triax resume`` ask of a training, whatever loop it runs in."""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import PyTree

from triax.runs import Resumable, Run


class Plan(NamedTuple):
    """When a training ends."""

    total_steps: int
    stop_at: float | None
    """The mean return of an evaluation that ends it; ``None`` for the environment's own threshold."""


class Outcome(NamedTuple):
    """How a training ended."""

    step: int
    goal: float
    """The mean return that was to end it; infinite without one."""
    best: float
    """The best mean return of an evaluation; minus infinity without one."""
    num_episodes: int
    """Episodes of each evaluation."""
    reached_goal: bool
    """Whether it ended for that."""

    @property
    def about_goal(self) -> str:
        """In words; empty without a goal."""
        met = "reached" if self.best >= self.goal else "not reached"
        return f" (goal of {self.goal:g} {met})" if math.isfinite(self.goal) else ""


@runtime_checkable
class Training(Resumable, Protocol):
    """A training that has not begun, or one that is as it was when its state was saved.

    Loading a state restores ``step`` too.
    """

    @property
    def resumes_in_new_episodes(self) -> bool:
        """Whether environments cannot go on where they were, so that a resumed run is not that of an unbroken one."""
        ...

    @property
    def step(self) -> int:
        """Steps done so far."""
        ...

    def run(self, run: Run, plan: Plan, should_stop: Callable[[], bool]) -> Outcome:
        """Train until the plan is met or ``should_stop()``; logs, evaluates and saves states into ``run``."""
        ...

    def weights(self) -> PyTree:
        """What acting needs."""
        ...

    def close(self) -> None:
        """Closes environments."""
        ...
