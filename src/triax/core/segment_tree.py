"""Segment trees for prioritized sampling: sums, minima and maxima over ranges of a fixed number of leaves.

Nodes have sixteen children, not two: a level costs a handful of NumPy calls however many leaves are
asked for, so few wide levels are faster than many narrow ones. Writes only mark leaves; the nodes above them
are recomputed (never incremented, so sums do not drift) when something is read.
"""

from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from triax.core.errors import NonFiniteError
from triax.core.keys import make_generator
from triax.core.numbers import positive_int
from triax.core.proportional_search import FANOUT, Changed, ProportionalSearch, exact_inverse_cdf

Reducer = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Up to this many nodes, one cumulative sum over a whole level is as fast as descending one level further.
_FLAT_SEARCH = 8192


class SegmentTree:
    """A binary reducer over ranges of ``capacity`` float64 leaves, in O(log capacity) an item.

    ``reducer`` is a vectorised associative function of two arrays and ``init_value`` its unit, the value
    of every leaf at the start. ``tree[level]`` and ``tree[level, index]`` show the equivalent binary
    tree: level 0 is the root, negative levels count from the leaves.
    """

    def __init__(self, capacity: int | np.integer, reducer: Reducer, init_value: float):
        self.capacity = positive_int(type(self).__name__, "capacity", capacity)
        self.reducer = reducer
        self.init_value = float(init_value)
        self._levels = _empty_levels(self.capacity, self.init_value)
        self._written: list[Int[np.ndarray, " n"]] = []
        self._num_written = 0

    def __len__(self) -> int:
        return self.capacity

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self.capacity}, root_value={self.root_value:.6g})"

    @property
    def height(self) -> int:
        """Number of levels of the equivalent binary tree, ``ceil(log2(capacity)) + 1``."""
        return (self.capacity - 1).bit_length() + 1

    @property
    def values(self) -> Float[np.ndarray, " capacity"]:
        """The leaves: a read-only view; write through ``set_values``."""
        values = self._leaves.view()
        values.flags.writeable = False
        return values

    @property
    def _leaves(self) -> Float[np.ndarray, " capacity"]:
        return self._levels[0][: self.capacity]  # made anew: a stored view would be a copy after pickling

    @property
    def root_value(self) -> float:
        """The reduction of all leaves."""
        self._refresh()
        return float(self._levels[-1][0])

    def __getitem__(self, key: Any) -> Any:
        level, *index = key if isinstance(key, tuple) else (key,)
        height = self.height
        if not -height <= level < height:
            raise IndexError(f"{type(self).__name__}: level must be in [-{height}, {height}); got {level}")
        nodes = self._binary_level(level % height)
        return nodes[tuple(index)] if index else nodes

    def set_values(self, idx: Any, values: Any) -> None:
        """Write leaves: ``idx`` an int, a list or 1-d array of ints, or ``...``/``None`` for all leaves.

        Negative indices count from the end; where an index occurs twice the last value wins. Raises
        ``IndexError`` for an index of another kind or out of range; nothing is written then.
        """
        values = self._check_values(np.asarray(values, np.float64))
        where = self._leaf_indices(idx)
        try:
            self._leaves[where] = values
        except IndexError:
            raise IndexError(
                f"{type(self).__name__}: idx must lie in [-{self.capacity}, {self.capacity}); got {idx}"
            ) from None
        self._written.append(where % self.capacity)
        self._num_written += where.size
        if self._num_written > self._levels[min(1, len(self._levels) - 1)].size:
            self._refresh()

    def partial_reduce(self, start: Any = 0, stop: Any = None) -> Float[np.ndarray, " n"]:
        """Reduce ``values[start:stop]``; arrays of starts and stops are broadcast to many ranges.

        Negative numbers count from the end, ``stop=None`` is the end. Always returns a 1-d array. Raises
        ``IndexError`` for an empty, inverted or overlong range, ``TypeError`` for anything but ints and
        1-d arrays of ints, ``ValueError`` when their lengths differ.
        """
        first = self._bounds(start, "start")
        end = self._bounds(self.capacity if stop is None else stop, "stop")
        if first.size != end.size and 1 not in (first.size, end.size):
            raise ValueError(f"{type(self).__name__}: start and stop differ in length, {first.size} and {end.size}")
        first, end = np.broadcast_arrays(first, end)
        if not np.all((first >= 0) & (first < end) & (end <= self.capacity)):
            raise IndexError(
                f"{type(self).__name__}: ranges must satisfy 0 <= start < stop <= {self.capacity}; "
                f"got start={start}, stop={stop}"
            )
        self._refresh()
        return self._reduce_ranges(first, end - 1)

    def _check_values(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The values, unless they would poison the nodes above them."""
        return values

    def _leaf_indices(self, idx: Any) -> Int[np.ndarray, " n"]:
        if idx is None or isinstance(idx, EllipsisType):
            return np.arange(self.capacity)
        where = np.atleast_1d(np.asarray(idx))
        if where.size == 0 and where.ndim == 1:
            return where.astype(np.int64)
        if where.ndim != 1 or where.dtype.kind not in "iu":
            raise IndexError(
                f"{type(self).__name__}: idx must be an int, a list or 1-d array of ints, or ...; got {idx!r}"
            )
        return where

    def _bounds(self, bound: Any, name: str) -> Int[np.ndarray, " n"]:
        bounds = np.atleast_1d(np.asarray(bound))
        if bounds.ndim != 1 or bounds.dtype.kind not in "iu":
            raise TypeError(f"{type(self).__name__}: {name} must be an int or a 1-d array of ints; got {bound!r}")
        bounds = bounds.astype(np.int64)
        return np.where(bounds < 0, bounds + self.capacity, bounds)

    def _refresh(self) -> None:
        """Recompute the nodes above the leaves written since the last read."""
        if not self._num_written:
            return
        nodes = np.concatenate(self._written)
        changed: list[Changed] = []
        for level, above in zip(self._levels, self._levels[1:], strict=False):
            blocks = level.reshape(-1, FANOUT)
            nodes = nodes // FANOUT
            changed.append(nodes if nodes.size < len(blocks) else slice(0, len(blocks)))
            above[changed[-1]] = self._reduce_blocks(blocks[changed[-1]])
        self._written, self._num_written = [], 0
        self._refreshed(changed)

    def _refreshed(self, changed: list[Changed]) -> None:
        """``changed[k]`` are the blocks of level ``k`` with a leaf written: the nodes of level ``k + 1``."""

    def _reduce_blocks(self, blocks: Float[np.ndarray, "n width"]) -> Float[np.ndarray, " n"]:
        # Neighbours are joined, so a reducer need not commute; for 16 columns this beats ufunc.reduce.
        while blocks.shape[1] > 1:
            blocks = self.reducer(blocks[:, 0::2], blocks[:, 1::2])
        return blocks[:, 0]

    def _reduce_ranges(self, first: Int[np.ndarray, " n"], last: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Reduce the leaves ``first..last`` (both included): at each level the ragged ends, then one up."""
        columns = np.arange(FANOUT)
        head = np.full(first.shape, self.init_value)
        tail = head
        for level in self._levels:
            blocks = level.reshape(-1, FANOUT)
            left, right = first // FANOUT, last // FANOUT
            whole = left == right
            open_ = first <= last
            low = np.where(open_, first % FANOUT, FANOUT)[:, None]
            high = (last % FANOUT)[:, None]
            ends_in_left = np.where(whole[:, None], high, FANOUT)
            ends_in_right = np.where((open_ & ~whole)[:, None], high, -1)
            in_left = (columns >= low) & (columns <= ends_in_left)
            in_right = columns <= ends_in_right
            head = self.reducer(head, self._reduce_masked(blocks, left, in_left))
            tail = self.reducer(self._reduce_masked(blocks, right, in_right), tail)
            first, last = left + 1, right - 1
            if np.all(first > last):
                break
        return self.reducer(head, tail)

    def _reduce_masked(
        self,
        blocks: Float[np.ndarray, "m width"],
        rows: Int[np.ndarray, " n"],
        mask: np.ndarray,
    ) -> Float[np.ndarray, " n"]:
        children = blocks.take(rows, axis=0, mode="clip")
        return self._reduce_blocks(np.where(mask, children, self.init_value))

    def _binary_level(self, level: int) -> Float[np.ndarray, " nodes"]:
        self._refresh()
        steps, halvings = divmod(self.height - 1 - level, FANOUT.bit_length() - 1)
        nodes = np.full(2 ** (level + halvings), self.init_value)
        stored = self._levels[steps][: nodes.size]
        nodes[: stored.size] = stored
        for _ in range(halvings):
            nodes = self.reducer(nodes[0::2], nodes[1::2])
        return nodes


def _empty_levels(capacity: int, unit: float) -> list[Float[np.ndarray, " nodes"]]:
    """Levels from the leaves to the root, each but the root padded with units to whole blocks."""
    sizes = [capacity]
    while sizes[-1] > 1 or len(sizes) == 1:
        sizes.append(-(-sizes[-1] // FANOUT))
    return [np.full(-(-size // FANOUT) * FANOUT, unit) for size in sizes]


class SumTree(SegmentTree):
    """A segment tree of sums that samples leaves in proportion to their values.

    Values must be finite and not negative: ``NonFiniteError`` and ``ValueError`` otherwise, and nothing is
    written. ``random_seed=None`` draws fresh entropy; the generator is the tree's own.
    """

    def __init__(self, capacity: int | np.integer, random_seed: int | None = None):
        super().__init__(capacity, np.add, 0.0)
        flat = next(k for k, level in enumerate(self._levels) if level.size <= _FLAT_SEARCH)
        self._search = ProportionalSearch(self._levels[: flat + 1])
        self.random_seed = random_seed

    @property
    def random_seed(self) -> int | None:
        """The seed; setting it restarts the generator."""
        return self._random_seed

    @random_seed.setter
    def random_seed(self, seed: int | None) -> None:
        self._generator = make_generator(seed)
        self._random_seed = seed

    def sample(self, n: int | np.integer, *, stratified: bool = False) -> Int[np.ndarray, " n"]:
        """Draw ``n`` leaf indices with replacement, each with probability ``value / sum of values``.

        Draws are independent, or, with ``stratified``, one from each of ``n`` equal shares of the sum
        (in ascending order), which has the same expectation and less variance. Source: Schaul et al. 2016,
        arXiv:1511.05952, appendix B.2.1.
        """
        n = positive_int("SumTree.sample", "n", n)
        shares = self._generator.random(n)
        if stratified:
            shares = (np.arange(n) + shares) / n
        return self.locate(shares)[0]

    def inverse_cdf(self, u: Any) -> Any:
        """The leaf at which the cumulated share of the sum first exceeds ``u``, a number or 1-d array.

        It always has a positive value, at ``u = 1`` too. Scalar in, ``int`` out. Raises ``ValueError``
        outside [0, 1] and ``RuntimeError`` when the sum is not positive.
        """
        shares = np.asarray(u, np.float64)
        if shares.ndim > 1 or not np.all((shares >= 0) & (shares <= 1)):
            raise ValueError(f"SumTree.inverse_cdf: u must be a number or 1-d array in [0, 1]; got {u!r}")
        found, _ = self.locate(np.atleast_1d(shares))
        return found if shares.ndim else int(found[0])

    def locate(self, shares: Float[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """As ``inverse_cdf`` of a vector in [0, 1], which is not checked: the leaves and their values."""
        self._refresh()
        leaves = self._leaves
        found = self._search.find(shares)
        values = leaves.take(found)
        if not values.all():
            empty = values <= 0
            found[empty] = exact_inverse_cdf(leaves, shares[empty])
            values = leaves.take(found)
        return found, values

    def _refreshed(self, changed: list[Changed]) -> None:
        self._search.renew(changed)

    def _check_values(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        if values.size == 0:
            return values
        low, high = np.minimum.reduce(values, axis=None), np.maximum.reduce(values, axis=None)
        if not (low > -np.inf and high < np.inf):
            raise NonFiniteError(
                f"SumTree: values must be finite; got {values[~np.isfinite(values)][:5]} among {values.size} values"
            )
        if low < 0:
            raise ValueError(f"SumTree: values must not be negative; got {low}")
        return values


class MinTree(SegmentTree):
    """A segment tree of minima; empty leaves are ``inf``. NaN is refused with ``NonFiniteError``."""

    def __init__(self, capacity: int | np.integer):
        super().__init__(capacity, np.minimum, np.inf)

    def _check_values(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        return _refuse_nan("MinTree", values)


class MaxTree(SegmentTree):
    """A segment tree of maxima; empty leaves are ``-inf``. NaN is refused with ``NonFiniteError``."""

    def __init__(self, capacity: int | np.integer):
        super().__init__(capacity, np.maximum, -np.inf)

    def _check_values(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        return _refuse_nan("MaxTree", values)


def _refuse_nan(who: str, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    if np.isnan(values).any():
        raise NonFiniteError(f"{who}: values must not be NaN; got {np.isnan(values).sum()} of {values.size}")
    return values
