"""What one row of the stored batches is like, and whether another batch is like it."""

from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from triax.core.tree_differences import describe_difference
from triax.experience_replay.batch import named_arrays

_ID = np.array(0)


class RowFormat:
    """Structure, shapes and dtypes of batches like the one that it is made from.

    The leaf named ``id_leaf`` identifies rows: it may be of any dtype and is not among ``names`` and ``rows``,
    which tell of the leaves to store. ``who`` starts the error messages.
    """

    def __init__(self, who: str, batch: PyTree, batch_size: int, id_leaf: str | None = None):
        arrays = named_arrays(who, batch, batch_size)
        if id_leaf is not None and id_leaf not in arrays:
            raise ValueError(f"{who}: {id_leaf} must be an array with the batch on axis 0; got None")
        self.who = who
        self.names = [name for name in arrays if name != id_leaf]
        self.rows = [row_of(arrays[name]) for name in self.names]
        self._id_name = id_leaf
        self._id_leaf = None if id_leaf is None else list(arrays).index(id_leaf)
        self._treedef = jax.tree.structure(batch)
        self._plain = [(np.ndarray, row.dtype, (1, *row.shape)) for row in self.rows]

    def plain_row(self, batch: Any) -> list[np.ndarray] | None:
        """The leaves to store if ``batch`` is one row of NumPy arrays of this format, else ``None``: fast."""
        try:
            leaves = self._treedef.flatten_up_to(batch)
        except ValueError:  # another structure: checked_rows tells which
            return None
        try:
            if self._id_leaf is not None and leaves.pop(self._id_leaf).shape != (1,):
                return None
            is_plain = [(type(leaf), leaf.dtype, leaf.shape) for leaf in leaves] == self._plain
        except AttributeError:  # no array: the same
            return None
        return leaves if is_plain else None

    def checked_rows(self, batch: Any, batch_size: int) -> list[np.ndarray]:
        """The leaves to store, or ``ValueError`` (``TypeError`` for what is no array) that names the odd ones."""
        arrays = named_arrays(self.who, batch, batch_size)
        like = [_ID if name == self._id_name else row_of(array) for name, array in arrays.items()]
        expected = self.unflatten(list(self.rows), _ID)
        refuse_difference(self.who, expected, jax.tree.structure(batch).unflatten(like))
        return [array for name, array in arrays.items() if name != self._id_name]

    def unflatten(self, leaves: list[np.ndarray], ids: np.ndarray | None) -> Any:
        """The batch of these stored leaves, identified by ``ids``."""
        if self._id_leaf is not None:
            assert ids is not None
            leaves.insert(self._id_leaf, ids)
        return self._treedef.unflatten(leaves)


def refuse_difference(who: str, expected: PyTree, found: PyTree) -> None:
    """``ValueError`` that names the leaves in which ``found`` differs in structure, shape or dtype."""
    difference = describe_difference(expected, found, name="a row")
    if difference:
        raise ValueError(f"{who}: {difference}\nA buffer holds transitions of one kind only.")


def row_of(array: np.ndarray) -> np.ndarray:
    """Shape and dtype of one row of ``array``, as an array that takes no memory."""
    return np.broadcast_to(np.zeros((), array.dtype), array.shape[1:])
