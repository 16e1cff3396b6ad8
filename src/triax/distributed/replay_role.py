"""The replay of a distributed run, whatever process it is in."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PyTree

from triax.agents.off_policy import ReplayNeeds
from triax.experience_replay import PrioritizedReplayBuffer
from triax.reward_tracing import TransitionBatch


class Replay:
    """Prioritized replay whose rows are numbered over its lives: see :class:`ReplayJournal`.

    Args:
        needs: what the agent learns from.
        capacity: transitions to keep.
        seed: of its draws.
        first_id: the number of the first row that will be added.
    """

    def __init__(self, needs: ReplayNeeds, capacity: int, seed: int, first_id: int = 0) -> None:
        assert needs.alpha is not None
        self._batch_size = needs.batch_size
        self._buffer = PrioritizedReplayBuffer(capacity, needs.alpha, needs.beta, epsilon=1e-6, random_seed=seed)
        self._first_id = first_id
        self._added = 0

    def __len__(self) -> int:
        return len(self._buffer)

    def add(self, batch: TransitionBatch, errors: Float[np.ndarray, " n"]) -> None:
        """Store transitions with their first TD errors."""
        self._buffer.add(batch, errors)
        self._added += batch.batch_size

    def sample(self, num_batches: int) -> tuple[TransitionBatch, Int[np.ndarray, "batches batch"]]:
        """Batches, leaves ``[batches, batch, ...]``, and the numbers of what was drawn."""
        drawn = [self._buffer.sample(self._batch_size) for _ in range(num_batches)]
        batch = jax.tree.map(lambda *leaves: np.stack(leaves), *drawn)
        return batch, batch.idx + self._first_id

    def set_errors(self, ids: Int[np.ndarray, " n"], errors: Float[np.ndarray, " n"]) -> None:
        """New TD errors by number. What this life does not know is left alone, and so is what is not finite."""
        own = ids - self._first_id
        known = (own >= 0) & (own < self._added) & np.isfinite(errors)
        self._buffer.update(own[known], errors[known])

    def restore(
        self,
        state: dict[str, Any] | None,
        example: PyTree,
        chunks: Iterable[tuple[TransitionBatch, np.ndarray]],
        known: tuple[Int[np.ndarray, " known"], Float[np.ndarray, " known"]],
    ) -> None:
        """Hold what a lost one held: its state at the beginning, if any, what was added since, what was learned."""
        if state is not None:
            self._buffer.load_state_dict(state, example)
            self._added = state["scalars"]["num_appended"]
            self._first_id -= self._added - len(self._buffer)
        for batch, errors in chunks:
            self.add(batch, errors)
        self.set_errors(*known)

    def state_dict(self) -> dict[str, Any]:
        """Of the buffer: see :meth:`PrioritizedReplayBuffer.state_dict`."""
        return self._buffer.state_dict()
