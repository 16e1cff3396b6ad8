"""Preallocated ring arrays, one per leaf of a batch: the storage of every replay buffer."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int, PyTree

from triax.core.numbers import positive_int
from triax.core.tree_differences import describe_leaf
from triax.experience_replay.frames import FrameStore
from triax.experience_replay.row_format import RowFormat, refuse_difference, row_of

# Rows of a leaf are shared from this size on, in bytes: then looking for an equal one is cheap beside copying.
_FRAME_NBYTES = 4096
_RESTORED_AT_ONCE = 1024
_SHOWN = 4


class Ring:
    """The last ``capacity`` rows that were appended: row ``k`` of all, from 0, lies in slot ``k % capacity``.

    The first batch decides structure, shapes and dtypes; memory for all rows is reserved then (the operating
    system hands it out as rows come). Unless ``share_frames`` is false, large rows of a leaf (4 KiB and more:
    images) are stored once however many transitions show them, be it as stacked frames, ``S`` or ``S_next``.

    The leaf named ``id_leaf`` is not stored: it is ``k``. ``who`` starts the error messages.
    """

    def __init__(self, who: str, capacity: int | np.integer, *, id_leaf: str | None = None, share_frames: bool = True):
        self.who = who
        self.capacity = positive_int(who, "capacity", capacity)
        self.size = 0
        self.num_appended = 0
        self._id_leaf = id_leaf
        self._frame_nbytes = _FRAME_NBYTES if share_frames else np.inf
        self._format: RowFormat | None = None
        self._columns: list[np.ndarray] = []
        self._stores: dict[int, FrameStore] = {}  # by column, which then holds the numbers of frames, or -1

    @property
    def first_id(self) -> int:
        """Insertion number of the oldest row."""
        return self.num_appended - self.size

    @property
    def is_allocated(self) -> bool:
        """Whether structure, shapes and dtypes are known."""
        return self._format is not None

    @property
    def num_frames(self) -> int:
        """How many different images are stored."""
        return sum(len(store) for store in self._distinct_stores())

    def describe(self) -> str:
        """Dtype and shape of the leaves of a row."""
        if self._format is None:
            return "empty"
        named = zip(self._format.names, self._format.rows, strict=True)
        shown = [f"{name} {describe_leaf(row)}" for name, row in named]
        more = [f"and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
        return ", ".join(shown[:_SHOWN] + more)

    def append_row(self, batch: Any) -> bool:
        """The fast path of ``append``: whether ``batch`` was one plain row, and has been stored."""
        rows = None if self._format is None else self._format.plain_row(batch)
        if rows is None:
            return False
        slot = self.num_appended % self.capacity
        self._put(slice(slot, slot + 1), rows)
        self.num_appended += 1
        if self.size < self.capacity:
            self.size += 1
        return True

    def append(self, batch: PyTree, batch_size: int) -> None:
        """Store a copy of every row; the oldest give way. Nothing is changed when the batch does not fit."""
        self._write(self.allocate(batch, batch_size).checked_rows(batch, batch_size))

    def allocate(self, batch: PyTree, batch_size: int) -> RowFormat:
        """Unless that is done, reserve memory for rows like those of ``batch``, which is not stored."""
        if self._format is None:
            row_format = RowFormat(self.who, batch, batch_size, self._id_leaf)
            self._stores = self._new_stores(row_format.rows)
            self._columns = [
                np.full(self.capacity, -1) if k in self._stores else np.zeros((self.capacity, *row.shape), row.dtype)
                for k, row in enumerate(row_format.rows)
            ]
            self._format = row_format
        return self._format

    def rows(self, ids: Int[np.ndarray, " n"]) -> Any:
        """The rows with these insertion numbers: a batch of fresh arrays, whose ``id_leaf`` is ``ids``."""
        return self._take(ids % self.capacity, ids)

    def rows_in(self, slots: Int[np.ndarray, " n"]) -> Any:
        """The rows in these slots, all of which are in use, as ``rows`` gives them."""
        if self.num_appended <= self.capacity:
            return self._take(slots, slots)
        seam = self.num_appended % self.capacity  # from here on, slots are of the round before
        ids = slots + (self.num_appended - seam)
        ids -= (slots >= seam) * self.capacity
        return self._take(slots, ids)

    def column(self, name: str) -> np.ndarray:
        """The rows of one leaf in all slots, by slot: not a copy, and without ``share_frames`` only."""
        return self._columns[self._names().index(name)]

    def gather(self, pick: Callable[[str, np.ndarray], np.ndarray], ids: np.ndarray | None = None) -> Any:
        """The batch of leaves ``pick(name, rows in all slots)``; shared frames are looked up afterwards."""
        assert self._format is not None
        leaves = [pick(name, column) for name, column in zip(self._format.names, self._columns, strict=True)]
        for k, store in self._stores.items():
            leaves[k] = store.take(leaves[k])
        return self._format.unflatten(leaves, ids)

    def _take(self, slots: Int[np.ndarray, " n"], ids: Int[np.ndarray, " n"]) -> Any:
        return self.gather(lambda _, column: column.take(slots, axis=0), ids)

    def clear(self) -> None:
        """Drop all rows; insertion numbers go on."""
        self.size = 0
        for k, store in self._stores.items():
            self._columns[k].fill(-1)
            store.clear()

    def snapshot(self) -> dict[str, np.ndarray]:
        """Copies of the stored rows, oldest first: ``rows/<leaf>``, and ``frames/<number>`` where shared."""
        slots = np.arange(self.first_id, self.num_appended) % self.capacity
        rows = [column.take(slots, axis=0) for column in self._columns]
        frames = {}
        for number, store in enumerate(self._distinct_stores()):
            columns = [k for k, other in self._stores.items() if other is store]
            used, places = np.unique(np.stack([rows[k] for k in columns]), return_inverse=True)
            for k, place in zip(columns, places.reshape(len(columns), -1), strict=True):
                rows[k] = place
            frames[f"frames/{number}"] = store.take(used)
        return {f"rows/{name}": row for name, row in zip(self._names(), rows, strict=True)} | frames

    def restore(self, snapshot: dict[str, np.ndarray], num_appended: int) -> None:
        """Hold exactly a snapshot's rows, the last of ``num_appended``; ``ValueError`` unless they fit."""
        size = self._check_snapshot(snapshot, num_appended)
        rows = [snapshot[f"rows/{name}"] for name in self._names()]
        stores = self._distinct_stores()
        frames = {k: snapshot[f"frames/{stores.index(store)}"] for k, store in self._stores.items()}
        self.clear()
        self.num_appended = num_appended - size
        for start in range(0, size, _RESTORED_AT_ONCE):
            chunk = [row[start : start + _RESTORED_AT_ONCE] for row in rows]
            for k, images in frames.items():
                chunk[k] = images.take(chunk[k], axis=0)
            self._write(chunk)

    def _names(self) -> list[str]:
        return [] if self._format is None else self._format.names

    def _distinct_stores(self) -> list[FrameStore]:
        return list(dict.fromkeys(self._stores.values()))

    def _new_stores(self, rows: list[np.ndarray]) -> dict[int, FrameStore]:
        # Most images are the next of one transition and the present of another: about one for each row.
        num_frames = self.capacity + self.capacity // 16 + 64
        by_kind: dict[tuple, FrameStore] = {}
        stores = {}
        for k, row in enumerate(rows):
            if row.size * row.itemsize >= self._frame_nbytes:
                kind = (row.shape, row.dtype)
                if kind not in by_kind:
                    by_kind[kind] = FrameStore(row.shape, row.dtype, num_frames)
                stores[k] = by_kind[kind]
        return stores

    def _write(self, rows: list[np.ndarray]) -> None:
        given = len(rows[0])
        kept = min(given, self.capacity)
        slot = (self.num_appended + given - kept) % self.capacity
        before_seam = min(kept, self.capacity - slot)
        middle = given - kept + before_seam
        self._put(slice(slot, slot + before_seam), [row[given - kept : middle] for row in rows])
        self._put(slice(0, kept - before_seam), [row[middle:] for row in rows])
        self.num_appended += given
        self.size = min(self.size + given, self.capacity)

    def _put(self, slots: slice, rows: list[np.ndarray]) -> None:
        for k, store in self._stores.items():
            # First the new ones: they are often among the old ones.
            numbers = store.put(rows[k])
            store.release(self._columns[k][slots])
            rows[k] = numbers
        for column, row in zip(self._columns, rows, strict=True):
            column[slots] = row

    def _check_snapshot(self, snapshot: dict[str, np.ndarray], num_appended: int) -> int:
        """How many rows a snapshot has, or ``ValueError`` when they are not for this ring."""
        columns = {f"rows/{name}": column for name, column in zip(self._names(), self._columns, strict=True)}
        frames = {f"frames/{k}": store.take(np.array([0])) for k, store in enumerate(self._distinct_stores())}
        refuse_difference(
            self.who,
            {name: row_of(array) for name, array in (columns | frames).items()},
            {name: row_of(np.atleast_1d(array)) for name, array in snapshot.items()},
        )
        sizes = {len(snapshot[name]) for name in columns} or {0}
        if len(sizes) > 1 or max(sizes) > min(self.capacity, num_appended):
            raise ValueError(
                f"{self.who}: the snapshot holds {sorted(sizes)} of {num_appended} rows ever added;"
                f" the capacity is {self.capacity}"
            )
        for k, store in self._stores.items():
            numbers = snapshot[f"rows/{self._names()[k]}"]
            num_frames = len(snapshot[f"frames/{self._distinct_stores().index(store)}"])
            if not np.all((numbers >= 0) & (numbers < num_frames)):
                raise ValueError(f"{self.who}: rows/{self._names()[k]} must be numbers of {num_frames} frames")
        return max(sizes)
