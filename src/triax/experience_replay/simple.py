"""Uniform experience replay."""

from typing import Any

import numpy as np

from triax.core.errors import InsufficientCacheError
from triax.core.numbers import positive_int
from triax.experience_replay.batch import ReplayableBatch
from triax.experience_replay.buffer import ReplayBuffer


class SimpleReplayBuffer(ReplayBuffer):
    """Replay that samples uniformly, without replacement within a batch. Iterates oldest to newest.

    Source: Lin 1992, Machine Learning 8; Mnih et al. 2015, doi:10.1038/nature14236.
    """

    def add(self, transition_batch: ReplayableBatch) -> None:
        """Store copies of all transitions; the oldest beyond ``capacity`` are dropped.

        Raises ``TypeError`` for anything but a batch, ``ValueError`` naming the leaf that does not fit.
        """
        self._append(transition_batch)

    def sample(self, batch_size: int | np.integer = 32) -> Any:
        """A batch of different transitions; ``InsufficientCacheError`` when fewer are stored."""
        ring = self._ring
        batch_size = positive_int("SimpleReplayBuffer.sample", "batch_size", batch_size)
        if batch_size > ring.size:
            raise InsufficientCacheError(
                f"SimpleReplayBuffer.sample: batch_size is {batch_size}, but only {ring.size} transitions are"
                " stored. Check len(buffer) first."
            )
        ids = self._rng.choice(ring.size, batch_size, replace=False)
        ids += ring.first_id
        return ring.rows(ids)
