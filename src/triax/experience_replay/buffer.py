"""What replay buffers share: a ring of rows, a generator of their own, and plain-array snapshots."""

import copy
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Int

from triax.core.errors import InsufficientCacheError
from triax.core.keys import make_generator
from triax.core.numbers import check_count
from triax.core.sealed import Sealed
from triax.experience_replay.batch import check_replayable
from triax.experience_replay.ring import Ring


class EmptyBufferError(InsufficientCacheError, RuntimeError):
    """Something was sampled from a buffer that holds nothing."""


B = TypeVar("B", bound="ReplayBuffer")


class ReplayBuffer(Sealed):
    """The last ``capacity`` transitions, of which ``sample`` returns random batches of fresh NumPy arrays.

    The first batch added decides structure, shapes and dtypes, and memory is reserved then. The ``idx`` of
    what comes out is the insertion number, int64. ``random_seed=None`` draws fresh entropy; no global
    generator is touched.

    Raises ``TypeError`` unless ``capacity`` is a positive int.
    """

    _own_arrays: tuple[str, ...] = ()  # names in a snapshot that are not the ring's

    def __init__(self, capacity: int | np.integer, random_seed: int | None = None):
        self._ring = self._new_ring(capacity)
        self._rng = make_generator(random_seed)

    def __copy__(self: B) -> B:
        return copy.deepcopy(self)  # two buffers that write one ring would corrupt each other

    def __repr__(self) -> str:
        parts = [f"{len(self):,} of {self.capacity:,}", *self._facts(), self._ring.describe()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _facts(self) -> list[str]:
        """What a subclass prints of its arguments."""
        return []

    @property
    def capacity(self) -> int:
        """Number of transitions that are kept."""
        return self._ring.capacity

    def __len__(self) -> int:
        return self._ring.size

    def __bool__(self) -> bool:
        return self._ring.size > 0

    @abstractmethod
    def sample(self, batch_size: int | np.integer = 32) -> Any:
        """A random batch."""

    def clear(self) -> None:
        """Drop all transitions. Insertion numbers and the random stream go on."""
        self._ring.clear()

    def _new_ring(self, capacity: int | np.integer) -> Ring:
        return Ring(type(self).__name__, capacity, id_leaf="idx")

    def _append(self, batch: Any) -> None:
        if not self._ring.append_row(batch):
            self._ring.append(batch, self._num_rows(batch))

    def _num_rows(self, batch: Any) -> int:
        """How many rows of the ring a batch fills; ``TypeError`` for what is no batch."""
        check_replayable(self._ring.who, batch)
        return batch.batch_size

    def __iter__(self) -> Iterator[Any]:
        ring = self._ring
        num_appended = ring.num_appended
        for row in self._ids_in_order():
            if ring.num_appended != num_appended:
                raise RuntimeError(f"{ring.who}: transitions were added while iterating over them")
            yield ring.rows(row[None])

    def _ids_in_order(self) -> Int[np.ndarray, " n"]:
        """Insertion numbers in the order of iteration."""
        return np.arange(self._ring.first_id, self._ring.num_appended)

    def state_dict(self) -> dict[str, Any]:
        """A snapshot: ``{"scalars": <what JSON can hold>, "arrays": {name: NumPy array}}``.

        It holds copies of everything, the state of the generator included: a buffer that loads it samples on,
        bit for bit.
        """
        scalars = {
            "kind": type(self).__name__,
            "num_appended": self._ring.num_appended,
            "generator": self._rng.bit_generator.state,
        }
        return {"scalars": scalars, "arrays": self._ring.snapshot()}

    def load_state_dict(self, state: dict[str, Any], example: Any = None) -> None:
        """Replace the contents by a snapshot's.

        ``example`` is a batch like those stored (of any size; its values do not matter), which tells the
        structure; it is needed unless something has been added before. Raises ``ValueError`` when the
        snapshot does not fit, ``TypeError`` for numbers that are of another kind; nothing is changed then.
        """
        self._check_kind(state)
        rows = {name: array for name, array in state["arrays"].items() if name not in self._own_arrays}
        generator = np.random.default_rng()
        generator.bit_generator.state = state["scalars"]["generator"]
        who = f"{type(self).__name__}.load_state_dict"
        num_appended = check_count(who, "num_appended", state["scalars"]["num_appended"], low=0)
        ring = self._ring_for(rows, example)
        ring.restore(rows, num_appended)
        self._ring, self._rng = ring, generator

    def _check_kind(self, state: dict[str, Any]) -> None:
        kind = state["scalars"]["kind"]
        if kind != type(self).__name__:
            raise ValueError(f"{type(self).__name__}.load_state_dict: the snapshot is of a {kind}")

    def _ring_for(self, rows: dict[str, np.ndarray], example: Any) -> Ring:
        """The present ring if it fits, else a new one, so that a refused snapshot changes nothing."""
        if self._ring.is_allocated and rows:
            return self._ring
        ring = self._new_ring(self.capacity)
        if rows:
            if example is None:
                raise ValueError(
                    f"{ring.who}.load_state_dict: nothing was added yet, so the structure is unknown:"
                    " pass example, a batch like those stored"
                )
            ring.allocate(example, self._num_rows(example))
        return ring
