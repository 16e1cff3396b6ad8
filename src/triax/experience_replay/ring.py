"""Preallocated ring arrays, one per leaf of a batch: the storage of every replay buffer."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from triax.core.tree_differences import describe_difference
from triax.experience_replay.batch import ReplayableBatch, check_replayable, named_arrays, row_of
from triax.experience_replay.checks import positive_int


class Ring:
    """The last ``capacity`` rows that were appended: row ``k`` of all, from 0, lies in slot ``k % capacity``.

    The first batch decides structure, shapes and dtypes; memory for all rows is reserved then (the operating
    system hands it out as rows come). ``idx`` is not stored: it is ``k``. ``who`` starts the error messages.
    """

    def __init__(self, who: str, capacity: int | np.integer):
        self.who = who
        self.capacity = positive_int(who, "capacity", capacity)
        self.size = 0
        self.num_appended = 0
        self._treedef: Any = None
        self._names: list[str] = []
        self._arrays: list[np.ndarray] = []
        self._one_row: list[tuple] = []
        self._idx_leaf = 0

    @property
    def first_id(self) -> int:
        """Insertion number of the oldest row."""
        return self.num_appended - self.size

    @property
    def is_allocated(self) -> bool:
        """Whether structure, shapes and dtypes are known."""
        return self._treedef is not None

    def append(self, batch: ReplayableBatch) -> None:
        """Store a copy of every row; the oldest give way. Nothing is changed when the batch does not fit."""
        if self._treedef is None:
            self.allocate(batch)
        rows = self._plain_row(batch)
        if rows is None:
            self._write(self._checked_rows(batch))
            return
        slot = self.num_appended % self.capacity
        here = slice(slot, slot + 1)
        for array, row in zip(self._arrays, rows, strict=True):
            array[here] = row
        self.num_appended += 1
        self.size = min(self.size + 1, self.capacity)

    def rows(self, ids: Int[np.ndarray, " n"]) -> Any:
        """The rows with these insertion numbers: a batch of fresh arrays, whose ``idx`` is ``ids``."""
        slots = ids % self.capacity
        leaves = [array.take(slots, axis=0) for array in self._arrays]
        leaves.insert(self._idx_leaf, ids)
        return self._treedef.unflatten(leaves)

    def clear(self) -> None:
        """Drop all rows; insertion numbers go on."""
        self.size = 0

    def allocate(self, batch: ReplayableBatch) -> None:
        """Reserve memory for rows like those of ``batch``, which is not stored."""
        check_replayable(self.who, batch)
        arrays = named_arrays(self.who, batch, batch.batch_size)
        if "idx" not in arrays:
            raise ValueError(f"{self.who}: idx must be an array with the batch on axis 0; got {batch.idx!r}")
        idx_leaf = list(arrays).index("idx")
        del arrays["idx"]
        stored = [np.zeros((self.capacity, *array.shape[1:]), array.dtype) for array in arrays.values()]
        self._idx_leaf, self._names, self._arrays = idx_leaf, list(arrays), stored
        self._one_row = [(np.ndarray, array.dtype, (1, *array.shape[1:])) for array in stored]
        self._treedef = jax.tree.structure(batch)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Copies of the stored rows, oldest first, by the name of their leaf."""
        slots = np.arange(self.first_id, self.num_appended) % self.capacity
        return {name: array.take(slots, axis=0) for name, array in self._stored().items()}

    def restore(self, snapshot: dict[str, np.ndarray], num_appended: int) -> None:
        """Hold exactly a snapshot's rows, the last of ``num_appended``; ``ValueError`` unless they fit."""
        size = len(next(iter(snapshot.values()), ()))
        rows = named_arrays(self.who, snapshot, size)
        if size > min(self.capacity, num_appended):
            raise ValueError(
                f"{self.who}: the snapshot holds {size} of {num_appended} rows ever added;"
                f" the capacity is {self.capacity}"
            )
        self._refuse_difference(
            {name: row_of(array) for name, array in self._stored().items()},
            {name: row_of(array) for name, array in rows.items()},
        )
        self.size, self.num_appended = 0, num_appended - size
        if size:
            self._write([rows[name] for name in self._names])

    def _stored(self) -> dict[str, np.ndarray]:
        return dict(zip(self._names, self._arrays, strict=True))

    def _plain_row(self, batch: Any) -> list[np.ndarray] | None:
        """The leaves without ``idx`` if they are one row of the arrays' shapes and dtypes: the fast path."""
        try:
            leaves = self._treedef.flatten_up_to(batch)
        except ValueError:  # another structure: _checked_rows tells which
            return None
        idx = leaves.pop(self._idx_leaf)
        try:
            fits = [(type(leaf), leaf.dtype, leaf.shape) for leaf in leaves] == self._one_row
            return leaves if fits and idx.shape == (1,) else None
        except AttributeError:  # no array: the same
            return None

    def _checked_rows(self, batch: Any) -> list[np.ndarray]:
        check_replayable(self.who, batch)
        arrays = named_arrays(self.who, batch, batch.batch_size)
        rows = [array for name, array in arrays.items() if name != "idx"]
        expected = [row_of(array) for array in self._arrays]
        expected.insert(self._idx_leaf, np.array(0))
        found = [np.array(0) if name == "idx" else row_of(array) for name, array in arrays.items()]
        self._refuse_difference(self._treedef.unflatten(expected), jax.tree.structure(batch).unflatten(found))
        return rows

    def _refuse_difference(self, stored: Any, given: Any) -> None:
        """``ValueError`` that names the leaves whose rows are unlike those stored."""
        difference = describe_difference(stored, given, name="a row")
        if difference:
            raise ValueError(f"{self.who}: {difference}\nA buffer holds transitions of one kind only.")

    def _write(self, rows: list[np.ndarray]) -> None:
        given = len(rows[0])
        kept = min(given, self.capacity)
        slot = (self.num_appended + given - kept) % self.capacity
        before_seam = min(kept, self.capacity - slot)
        for array, row in zip(self._arrays, rows, strict=True):
            row = row[given - kept :]
            array[slot : slot + before_seam] = row[:before_seam]
            array[: kept - before_seam] = row[before_seam:]
        self.num_appended += given
        self.size = min(self.size + given, self.capacity)
