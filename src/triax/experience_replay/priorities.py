"""Priorities of a buffer's slots: what is sampled how often."""

import numpy as np
from jaxtyping import Float, Int

from triax.core.errors import NonFiniteError
from triax.core.segment_tree import SumTree

# A priority that underflows must not become that of an empty slot, 0.
_SMALLEST = np.finfo(np.float64).tiny
_MAX_PENDING = 4096


class Priorities:
    """Priority ``error ** alpha`` for each of ``capacity`` slots; 0, never found, where there is no error.

    Errors are kept as given, so ``alpha`` may change without loss. The tree lags behind what was written
    until something is found: then one call brings in all of it.
    """

    def __init__(self, capacity: int, alpha: float):
        self._alpha = alpha
        self._errors = np.zeros(capacity)
        self._tree = SumTree(capacity, random_seed=0)
        self._pending: list[int] = []
        self.largest_error = 1.0

    @property
    def alpha(self) -> float:
        """The exponent; setting it changes all priorities, ``NonFiniteError`` if one would overflow."""
        return self._alpha

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        self._check_power(self.largest_error, alpha)
        self._alpha = alpha
        self._pending.clear()
        self._tree.set_values(..., np.where(self._errors > 0, self._power(self._errors), 0.0))

    def errors(self, slots: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The errors of these slots."""
        return self._errors.take(slots)

    def check(self, errors: Float[np.ndarray, " n"]) -> None:
        """``NonFiniteError`` if a priority of these would overflow."""
        self._check_power(float(errors.max(initial=0.0)), self._alpha)

    def write(self, slots: Int[np.ndarray, " n"], errors: Float[np.ndarray, " n"]) -> None:
        """Set errors, all above zero and checked before; the last wins where a slot occurs twice."""
        self.largest_error = max(self.largest_error, float(errors.max(initial=0.0)))
        self._errors[slots] = errors
        self._pending.extend(slots.tolist())
        self._limit_pending()

    def write_largest(self, slot: int) -> None:
        """Set the error of one slot to the largest so far."""
        self._errors[slot] = self.largest_error
        self._pending.append(slot)
        self._limit_pending()

    def find(self, shares: Float[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """The slots at these shares, in [0, 1), of the cumulated priorities, and their priorities."""
        self._catch_up()
        return self._tree.locate(shares)

    def clear(self) -> None:
        """Forget all errors, the largest so far too."""
        self._errors[:] = 0.0
        self._pending.clear()
        self._tree.set_values(..., np.zeros_like(self._errors))
        self.largest_error = 1.0

    def _limit_pending(self) -> None:
        if len(self._pending) >= _MAX_PENDING:
            self._catch_up()

    def _catch_up(self) -> None:
        if self._pending:
            slots = np.array(self._pending)
            self._tree.set_values(slots, self._power(self._errors.take(slots)))
            self._pending.clear()

    def _power(self, errors: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return np.maximum(errors**self._alpha, _SMALLEST)

    def _check_power(self, error: float, alpha: float) -> None:
        with np.errstate(over="ignore"):
            priority = np.float64(error) ** alpha
        # Their sum must be finite too.
        if not priority < np.finfo(np.float64).max / self._errors.size:
            raise NonFiniteError(
                f"PrioritizedReplayBuffer: a priority of {error:.6g} ** alpha, alpha={alpha:.6g}, overflows."
                " Are TD errors diverging?"
            )
