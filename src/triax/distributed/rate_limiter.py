"""How far gathering and learning may run ahead of each other."""

from dataclasses import dataclass

from triax.core.numbers import check_count, check_number


@dataclass(frozen=True)
class RateLimiter:
    """Counts only: the same number of updates for each step as in one process, give or take ``slack`` steps.

    Learning never runs ahead. Gathering does by at most ``slack`` steps, so that a slow learner makes the workers wait
    instead of filling the memory.
    """

    updates_per_step: float
    warm_up: int
    """Steps before the first update."""
    slack: int
    """Steps that may be gathered before the updates that those before them call for."""

    def __post_init__(self) -> None:
        check_number("RateLimiter", "updates_per_step", self.updates_per_step, positive=True)
        for name in ("warm_up", "slack"):
            check_count("RateLimiter", name, getattr(self, name), low=0)

    def updates_due(self, steps: int) -> int:
        """Updates that these steps call for, all together."""
        return int(max(steps - self.warm_up, 0) * self.updates_per_step)

    def steps_allowed(self, updates: int) -> int:
        """Steps that may be gathered after so many updates, all together."""
        return self.warm_up + int(updates / self.updates_per_step) + self.slack
