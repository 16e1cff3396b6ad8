"""How a distributed run is laid out."""

from dataclasses import dataclass

from triax.core.errors import TriaxError
from triax.core.numbers import check_count, check_number


class DistributedError(TriaxError, RuntimeError):
    """A process of a distributed run failed in a way that starting it again does not help."""


@dataclass(frozen=True)
class ApeXConfig:
    """Of :class:`ApeX`. Defaults suit small environments on one machine."""

    num_workers: int = 4
    """Rollout workers, a process each."""
    num_envs: int = 1
    """Environments side by side in each of them."""
    capacity: int = 131_072
    """Transitions that replay keeps. The object store keeps them once more, in case its process dies."""
    warm_up: int = 1_000
    """Steps before the first update."""
    updates_per_step: float = 1.0
    """Updates for each step after those; neither runs far ahead."""
    chunk_length: int = 32
    """Steps of each environment in one call of a worker, after which it looks for newer weights."""
    updates_per_call: int = 16
    """Updates in one call of the learner, after which weights are published."""
    epsilon: float = 0.4
    """Exploration of the first worker, where it is an epsilon ..."""
    epsilon_alpha: float = 7.0
    """... and how much less the last one explores: see :func:`epsilon_ladder`."""
    learner_gpus: float = 0.0
    """GPUs that Ray is asked to give to the learner."""
    max_restarts: int = 5
    """How often a process may die in a row, without any work between, before the run is given up."""
    start_timeout: float = 300.0
    """Seconds that processes may take to start."""

    def __post_init__(self) -> None:
        who = "ApeXConfig"
        counts = ("num_workers", "num_envs", "capacity", "chunk_length", "updates_per_call")
        for name in counts:
            check_count(who, name, getattr(self, name))
        for name in ("warm_up", "max_restarts"):
            check_count(who, name, getattr(self, name), low=0)
        for name in ("updates_per_step", "start_timeout"):
            check_number(who, name, getattr(self, name), positive=True)
        check_number(who, "epsilon", self.epsilon, low=0, high=1)
        for name in ("epsilon_alpha", "learner_gpus"):
            check_number(who, name, getattr(self, name), low=0)

    @property
    def steps_per_call(self) -> int:
        """Steps in one call of a worker."""
        return self.chunk_length * self.num_envs

    def slack(self, window: int) -> int:
        """Steps that gathering may be ahead of learning: two calls of each worker, and what one call of the learner
        wants. With returns over ``window`` steps the first transitions come later.
        """
        gathering = self.num_workers * (2 * self.steps_per_call + window * self.num_envs)
        return gathering + int(self.updates_per_call / self.updates_per_step) + 1
