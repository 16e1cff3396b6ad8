"""What a replay is told again after its process has died."""

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from triax.core.numbers import positive_int


class Entry(NamedTuple):
    """Rows that were added together."""

    rows: Any
    """The rows, or a reference to them: it is only kept and handed out."""
    num_rows: int


class ReplayJournal:
    """The entries that make up the last ``capacity`` rows, and the TD errors that were learned of them since.

    Rows are numbered as they are added, from 0. It holds references: what the rows take is up to the object store.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = positive_int("ReplayJournal", "capacity", capacity)
        self._entries: deque[Entry] = deque()
        self._errors = np.full(self._capacity, np.nan)
        self._total = self._kept = 0

    @property
    def total(self) -> int:
        """Rows ever added."""
        return self._total

    @property
    def first_id(self) -> int:
        """The number of the first row of the entries."""
        return self._total - self._kept

    @property
    def entries(self) -> list[Entry]:
        """Oldest first; the first one may begin before the last ``capacity`` rows."""
        return list(self._entries)

    def add(self, rows: Any, count: int) -> None:
        """Note rows that a replay is about to be given; entries that are overwritten as a whole are let go."""
        slots = np.arange(max(self._total, self._total + count - self._capacity), self._total + count) % self._capacity
        self._errors[slots] = np.nan
        self._entries.append(Entry(rows, count))
        self._total, self._kept = self._total + count, self._kept + count
        while self._kept - self._entries[0].num_rows >= self._capacity:
            self._kept -= self._entries.popleft().num_rows

    def set_errors(self, ids: Int[np.ndarray, " n"], errors: Float[np.ndarray, " n"]) -> None:
        """Note what was learned of rows; those that have been overwritten since are left alone."""
        alive = ids >= self._total - self._capacity
        self._errors[ids[alive] % self._capacity] = errors[alive]

    def known_errors(self) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """``(ids, errors)`` of the rows of which something was learned."""
        ids = np.arange(max(self.first_id, self._total - self._capacity), self._total)
        errors = self._errors[ids % self._capacity]
        known = ~np.isnan(errors)
        return ids[known], errors[known]
