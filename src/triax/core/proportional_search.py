"""Where cumulated shares of a sum fall: the search that samples from a tree of sums, all queries at once."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

FANOUT = 16
"""Children of a node."""

# Maps the values of sixteen children to seventeen cumulated sums, the first of them zero.
_CUMULATE = np.triu(np.ones((FANOUT, FANOUT + 1)), k=1)


def find_proportional(
    levels: Sequence[Float[np.ndarray, "..."]], shares: Float[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """Leaves at which the cumulated share of the sum first exceeds ``shares``, each in [0, 1].

    ``levels`` go from the leaves up to the one that is searched as a whole; each is padded to blocks
    of ``FANOUT`` siblings. A leaf is exact up to rounding, which may pick one of value zero. Raises
    ``RuntimeError`` when the sum is not positive and finite.
    """
    top = levels[-1]
    cumulated = np.zeros(top.size + 1)
    np.add.accumulate(top, out=cumulated[1:])
    total = cumulated[-1]
    if not 0 < total < np.inf:
        raise RuntimeError(f"SumTree: the sum of the values must be positive and finite to sample; it is {total}")
    mass = np.minimum(shares * total, np.nextafter(total, 0.0))
    nodes = cumulated[1:].searchsorted(mass, side="right")
    mass -= cumulated[nodes]
    for level in reversed(levels[:-1]):
        nodes, mass = _descend(level.reshape(-1, FANOUT), nodes, mass)
    return nodes


def _descend(
    blocks: Float[np.ndarray, "m width"], nodes: Int[np.ndarray, " n"], mass: Float[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """From nodes to those of their children in which ``mass`` falls, with the mass left over."""
    # The product is four times faster than np.cumsum, but need not round alike in every column.
    cumulated = blocks.take(nodes, axis=0) @ _CUMULATE
    mass = np.minimum(mass, np.nextafter(cumulated[:, -1], 0.0))
    children = (cumulated[:, 1:] > mass[:, None]).argmax(axis=1)
    left_of_child = cumulated.ravel().take(np.arange(nodes.size) * (FANOUT + 1) + children)
    return nodes * FANOUT + children, mass - left_of_child


def exact_inverse_cdf(values: Float[np.ndarray, " m"], shares: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Where the cumulated share of ``values`` first exceeds ``shares``: O(m), never a value of zero.

    A value of zero leaves the running sum as it is, so it is never the first to exceed anything.
    """
    cumulated = np.add.accumulate(values)
    mass = np.minimum(shares * cumulated[-1], np.nextafter(cumulated[-1], 0.0))
    return cumulated.searchsorted(mass, side="right")
