"""Sampling in proportion to priorities on the device: a tree of sums that costs the same whatever its size."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

FANOUT = 16
"""Children of a node."""

# Maps the values of siblings to the sums of those before each.
_BEFORE = np.triu(np.ones((FANOUT, FANOUT), np.float32), k=1)

Levels = tuple[Float[Array, "..."], ...]
"""Nodes from the leaves to the root, in blocks of siblings ``[blocks, FANOUT]``; padding is 0."""


@dataclass(frozen=True)
class DeviceSumTree:
    """Pure functions on ``Levels``; a write or a draw touches ``log(capacity)`` blocks per index.

    Sums are formed anew from the children of a node, so that rounding errors do not add up.
    """

    capacity: int

    def init(self) -> Levels:
        """All leaves zero."""
        levels, nodes = [], self.capacity
        while True:
            blocks = -(-nodes // FANOUT)
            levels.append(jnp.zeros((blocks, FANOUT), jnp.float32))
            if blocks == 1:
                return tuple(levels)
            nodes = blocks

    def values(self, levels: Levels, index: Int[Array, " n"]) -> Float[Array, " n"]:
        """The leaves at ``index``."""
        return levels[0][index // FANOUT, index % FANOUT]

    def total(self, levels: Levels) -> Float[Array, ""]:
        """The sum of all leaves."""
        return jnp.sum(levels[-1])

    def write(self, levels: Levels, index: Int[Array, " n"], values: Float[Array, " n"]) -> Levels:
        """The tree with these leaves; where an index occurs twice, one of its values."""
        written = [levels[0].at[index // FANOUT, index % FANOUT].set(values)]
        for above in levels[1:]:
            index = index // FANOUT
            sums = jnp.sum(written[-1][index], axis=-1)
            written.append(above.at[index // FANOUT, index % FANOUT].set(sums))
        return tuple(written)

    def find(self, levels: Levels, shares: Float[Array, " n"]) -> Int[Array, " n"]:
        """The leaves at which the cumulated sum first exceeds each share in [0, 1) of the total.

        They are positive if any is. Source: Schaul et al. 2016, arXiv:1511.05952, appendix B.2.1.
        """
        rest = shares * self.total(levels)
        index = jnp.zeros(shares.shape, jnp.int32)
        for level in reversed(levels):
            siblings = level[index]
            before = jnp.matmul(siblings, _BEFORE, precision="highest")
            # The last positive one that begins at or before the share: rounding never leads to an empty leaf.
            begun = (before <= rest[:, None]) & (siblings > 0)
            child = jnp.max(jnp.where(begun, jnp.arange(FANOUT, dtype=jnp.int32), 0), axis=-1)
            rest = rest - jnp.take_along_axis(before, child[:, None], axis=-1)[:, 0]
            index = index * FANOUT + child
        return index
