"""Where cumulated shares of a sum fall: the search that samples from a tree of sums, all queries at once."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

FANOUT = 16
"""Children of a node."""

# Maps the values of sixteen siblings to their cumulated sums; four times faster than np.cumsum.
_CUMULATE = np.triu(np.ones((FANOUT, FANOUT)))

Changed = Int[np.ndarray, " n"] | slice
"""Which nodes of a level changed."""


class ProportionalSearch:
    """Finds leaves by their cumulated share of the sum.

    Cumulated sums are kept beside the levels, and renewed where the tree was written: a search only reads.

    ``levels`` go from the leaves up to the one that is searched as a whole; each is padded to blocks of ``FANOUT``
    siblings. They are read in place.
    """

    def __init__(self, levels: Sequence[Float[np.ndarray, "..."]]) -> None:
        self._levels = list(levels)
        self._among_siblings = [np.empty_like(level).reshape(-1, FANOUT) for level in levels[:-1]]
        self._cumulated = np.zeros(levels[-1].size + 1)
        self.renew([slice(0, None)] * len(levels))

    def renew(self, changed: Sequence[Changed]) -> None:
        """Follow the tree: ``changed[k]`` are the blocks of siblings of level ``k``, the nodes of level ``k + 1``."""
        for level, among_siblings, blocks in zip(self._levels, self._among_siblings, changed, strict=False):
            sums = level.reshape(-1, FANOUT)[blocks] @ _CUMULATE
            # The product need not round alike in every column: whatever reaches a block falls into one of its nodes.
            sums[:, -1] = np.inf
            among_siblings[blocks] = sums
        nodes = changed[len(self._levels) - 2] if self._among_siblings else slice(0, None)
        first = nodes.start if isinstance(nodes, slice) else int(nodes.min())
        top = self._levels[-1][first:].copy()
        top[0] += self._cumulated[first]
        np.add.accumulate(top, out=self._cumulated[first + 1 :])
        self._total = self._cumulated[-1]
        self._below_total = np.nextafter(self._total, 0.0)

    def find(self, shares: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Leaves at which the cumulated share of the sum first exceeds ``shares``, each in [0, 1].

        A leaf is exact up to rounding, which may pick one of value zero. Raises ``RuntimeError`` when the sum is not
        positive and finite.
        """
        cumulated, total = self._cumulated, self._total
        if not 0 < total < np.inf:
            raise RuntimeError(f"SumTree: the sum of the values must be positive and finite to sample; it is {total}")
        order = shares.argsort()  # in order, a binary search takes half the time
        mass = shares.take(order)
        mass *= total
        np.minimum(mass, self._below_total, out=mass)
        nodes = cumulated[1:].searchsorted(mass, side="right")
        if self._among_siblings:
            mass -= cumulated.take(nodes)
        for depth, among_siblings in enumerate(reversed(self._among_siblings), start=2):
            children = _count_reached(among_siblings.take(nodes, axis=0), mass)
            children += nodes * FANOUT
            if depth <= len(self._among_siblings):
                left = among_siblings.ravel().take(children - 1)
                mass -= np.where(children % FANOUT, left, 0.0)
            nodes = children
        found = np.empty_like(nodes)
        found[order] = nodes
        return found


def _count_reached(sums: Float[np.ndarray, "n FANOUT"], mass: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """How many of the sums of each row its mass has reached, below ``FANOUT``."""
    # Each truth value is a byte with one bit: counting bits of eight at once is twice as fast as any reduction over
    # short rows, and so is comparing with a mass repeated, not broadcast.
    reached = sums <= mass.repeat(FANOUT).reshape(sums.shape)
    counts = np.bitwise_count(reached.view(np.uint64))
    return np.add(counts[:, 0], counts[:, 1], dtype=np.int64)


def exact_inverse_cdf(values: Float[np.ndarray, " m"], shares: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Where the cumulated share of ``values`` first exceeds ``shares``: O(m), never a value of zero.

    A value of zero leaves the running sum as it is, so it is never the first to exceed anything.
    """
    cumulated = np.add.accumulate(values)
    mass = np.minimum(shares * cumulated[-1], np.nextafter(cumulated[-1], 0.0))
    return cumulated.searchsorted(mass, side="right")
