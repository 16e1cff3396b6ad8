"""The state of an optimizer between steps: it may be read and written, and each step takes over its memory."""

from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from triax.core.errors import LostWeightsError
from triax.core.trees import any_deleted, copy_arrays, describe_difference


class OptimizerState:
    """Arrays that were handed out are never donated, and what a user writes into them counts.

    Args:
        who: the rule, for messages.
        state: the first one; copied. Others must have its structure, shapes and dtypes.
    """

    def __init__(self, who: str, state: PyTree) -> None:
        self._who = who
        self._state = copy_arrays(state)
        self._exposed = False
        self.like = jax.eval_shape(lambda: state)

    @property
    def value(self) -> PyTree:
        """The state, to look at only."""
        return self._state

    def read(self) -> PyTree:
        """The state, for the user to keep or to write numbers into; ``LostWeightsError`` if it is gone."""
        self._raise_if_lost()
        self._exposed = True
        return self._state

    def write(self, state: PyTree) -> None:
        """Replace it by a copy of another one; ``AttributeError`` if that does not fit."""
        self._state, self._exposed = self._own(state), False

    def take(self) -> PyTree:
        """The state in buffers that nobody else holds, with what a user may have written into it."""
        if self._exposed:
            self.write(self._state)
        return self._state

    def put(self, state: PyTree) -> None:
        """Store what a step gave."""
        self._state = state

    def copy(self) -> "OptimizerState":
        """One that shares nothing with this."""
        self._raise_if_lost()
        return OptimizerState(self._who, self._state)

    def check(self, name: str, found: PyTree) -> None:
        """``AttributeError`` that starts with the rule's attribute ``name`` unless ``found`` fits."""
        difference = describe_difference(self.like, found, "state")
        if difference is not None:
            raise AttributeError(f"{self._who}.{name}: its state does not fit the present one: {difference}")

    def _raise_if_lost(self) -> None:
        if any_deleted(self._state):
            raise LostWeightsError(
                f"{self._who}: the optimizer state is lost: a step failed while it held it. Assign optimizer_state from"
                " a checkpoint."
            )

    def _own(self, state: PyTree) -> PyTree:
        if jax.tree.structure(state) == jax.tree.structure(self.like):
            state = jax.tree.map(_typed_like, state, self.like)
        self.check("optimizer_state", state)
        return copy_arrays(state)


def _typed_like(leaf: Any, like: Any) -> Any:
    """Numbers that a user wrote into the state, in its dtype; weak types would compile anew."""
    if isinstance(leaf, jax.Array) and not getattr(leaf, "weak_type", False):  # arrays of keys have none
        return leaf
    return np.asarray(leaf, like.dtype)
