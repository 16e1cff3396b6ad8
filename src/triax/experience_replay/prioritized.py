"""Prioritized experience replay."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from triax.core.errors import NonFiniteError
from triax.core.numbers import positive_int
from triax.experience_replay.batch import ReplayableBatch, check_replayable
from triax.experience_replay.buffer import EmptyBufferError, ReplayBuffer
from triax.experience_replay.checks import positive_number
from triax.experience_replay.priorities import Priorities

_WHO = "PrioritizedReplayBuffer"
Number = float | int | np.floating | np.integer


class PrioritizedReplayBuffer(ReplayBuffer):
    r"""Replay that prefers transitions with a large TD error, and weighs them to make up for it.

    .. math::
        p_i = (|\mathrm{Adv}_i| + \epsilon)^\alpha, \qquad P_i = p_i / \sum_j p_j, \qquad
        w_i = (N P_i)^{-\beta} / \max_{j \in \mathrm{batch}} (N P_j)^{-\beta}

    ``N`` is the number of stored transitions. The maximum is that of the sampled batch, and the weights are
    multiplied onto the stored ``W``. Iterates in the order of slots (insertion number modulo capacity).

    ``alpha``, ``beta`` and ``epsilon`` are positive numbers and may be assigned at any time (``TypeError``
    otherwise): ``beta`` and ``epsilon`` take effect from then on, ``alpha`` on what is stored as well.

    Source: Schaul et al. 2016, arXiv:1511.05952, section 3.
    """

    _own_arrays = ("errors",)

    def __init__(
        self,
        capacity: int | np.integer,
        alpha: Number = 1.0,
        beta: Number = 1.0,
        epsilon: Number = 1e-4,
        random_seed: int | None = None,
    ):
        super().__init__(capacity, random_seed)
        self._priorities = Priorities(self.capacity, _positive("alpha", alpha))
        self._beta = _positive("beta", beta)
        self._epsilon = _positive("epsilon", epsilon)

    @property
    def alpha(self) -> float:
        """How strongly to prefer large errors: towards 0, sampling becomes uniform."""
        return self._priorities.alpha

    @alpha.setter
    def alpha(self, alpha: Number) -> None:
        self._priorities.alpha = _positive("alpha", alpha)

    @property
    def beta(self) -> float:
        """How fully the weights make up for the preference: 1 is unbiased."""
        return self._beta

    @beta.setter
    def beta(self, beta: Number) -> None:
        self._beta = _positive("beta", beta)

    @property
    def epsilon(self) -> float:
        """What is added to ``|Adv|``, so that an error of 0 is sampled too."""
        return self._epsilon

    @epsilon.setter
    def epsilon(self, epsilon: Number) -> None:
        self._epsilon = _positive("epsilon", epsilon)

    def _facts(self) -> list[str]:
        return [f"alpha={self.alpha:g}", f"beta={self.beta:g}", f"epsilon={self.epsilon:g}"]

    def add(self, transition_batch: ReplayableBatch, Adv: Any = None) -> None:
        """Store copies of all transitions; the oldest beyond ``capacity`` are dropped.

        ``Adv`` are their TD errors, ``[batch]``; ``None`` gives them the largest priority so far (that of an
        error of 1 at the start), so that each is soon sampled. Raises ``TypeError`` for anything but a batch,
        ``ValueError`` naming the leaf that does not fit, ``NonFiniteError`` for NaN or infinity; nothing is
        changed then.
        """
        ring = self._ring
        if Adv is None and ring.append_row(transition_batch):
            self._priorities.write_largest((ring.num_appended - 1) % ring.capacity)
            return
        check_replayable(_WHO, transition_batch)
        given = transition_batch.batch_size
        largest = self._priorities.largest_error
        errors = np.full(given, largest) if Adv is None else self._checked_errors(Adv, given)
        self._append(transition_batch)
        ids = np.arange(max(ring.num_appended - given, ring.first_id), ring.num_appended)
        self._priorities.write(ids % ring.capacity, errors[given - len(ids) :])

    def sample(self, batch_size: int | np.integer = 32) -> Any:
        """A batch drawn by priority, with replacement; importance weights are multiplied onto ``W``.

        Raises ``EmptyBufferError`` (an ``InsufficientCacheError`` and a ``RuntimeError``) when nothing is
        stored.
        """
        batch_size = positive_int(f"{_WHO}.sample", "batch_size", batch_size)
        if not self:
            raise EmptyBufferError(f"{_WHO}.sample: the buffer is empty")
        slots, priorities = self._priorities.find(self._rng.random(batch_size))
        batch = self._ring.rows_in(slots)
        # N and the sum of all priorities cancel in the division by the maximum.
        weights = ((priorities / priorities.min()) ** -self._beta).astype(np.float32)
        batch.W = weights if batch.W is None else batch.W * weights
        return batch

    def update(self, idx: Any, Adv: Any) -> None:
        """Set the TD errors of transitions, by their insertion numbers, ``batch.idx``; both ``[batch]``.

        Those that have been overwritten since are left alone. Raises ``ValueError`` for shapes that differ
        and for numbers never given, ``TypeError`` for anything but ints, ``NonFiniteError`` for NaN or
        infinity; nothing is changed then.
        """
        ids = np.asarray(idx)
        if ids.dtype.kind not in "iu":
            raise TypeError(f"{_WHO}.update: idx must hold ints; got dtype {ids.dtype}")
        if ids.ndim != 1:
            raise ValueError(f"{_WHO}.update: idx must have one axis; got shape {ids.shape}")
        errors = self._checked_errors(Adv, len(ids))
        if ids.size and not (ids.min() >= 0 and ids.max() < self._ring.num_appended):
            raise ValueError(
                f"{_WHO}.update: idx must be insertion numbers in [0, {self._ring.num_appended}), like the"
                f" idx of a sampled batch; got {ids.min()}..{ids.max()}"
            )
        alive = ids >= self._ring.first_id
        self._priorities.write(ids[alive] % self.capacity, errors[alive])

    def clear(self) -> None:
        """Drop all transitions and priorities. Insertion numbers and the random stream go on."""
        super().clear()
        self._priorities.clear()

    def state_dict(self) -> dict[str, Any]:
        """Like :meth:`ReplayBuffer.state_dict`, with the errors that make the priorities."""
        state = super().state_dict()
        ring = self._ring
        slots = np.arange(ring.first_id, ring.num_appended) % ring.capacity
        state["arrays"]["errors"] = self._priorities.errors(slots)
        state["scalars"] |= {
            "alpha": self.alpha,
            "beta": self.beta,
            "epsilon": self.epsilon,
            "largest_error": self._priorities.largest_error,
        }
        return state

    def load_state_dict(self, state: dict[str, Any], example: Any = None) -> None:
        """Like :meth:`ReplayBuffer.load_state_dict`; ``alpha, beta, epsilon`` become the snapshot's."""
        self._check_kind(state)
        scalars, errors = state["scalars"], state["arrays"]["errors"]
        size = next((len(rows) for name, rows in state["arrays"].items() if name.startswith("rows/")), 0)
        if errors.shape != (size,) or not np.all((errors > 0) & (errors < np.inf)):
            raise ValueError(f"{_WHO}.load_state_dict: errors must be {size} positive numbers; got {errors}")
        alpha, beta, epsilon, largest_error = (
            _positive(name, scalars[name]) for name in ("alpha", "beta", "epsilon", "largest_error")
        )
        if largest_error < errors.max(initial=0.0):
            raise ValueError(
                f"{_WHO}.load_state_dict: largest_error must be at least the largest of the stored errors,"
                f" {errors.max()}; got {largest_error}"
            )
        priorities = Priorities(self.capacity, alpha)
        priorities.check(errors)
        super().load_state_dict(state, example)
        ids = np.arange(self._ring.first_id, self._ring.num_appended)
        priorities.write(ids % self.capacity, errors)
        priorities.largest_error = largest_error
        self._priorities, self._beta, self._epsilon = priorities, beta, epsilon

    def _ids_in_order(self) -> Int[np.ndarray, " n"]:
        ids = super()._ids_in_order()
        return ids[np.argsort(ids % self.capacity)]

    def _checked_errors(self, Adv: Any, batch_size: int) -> Float[np.ndarray, " batch"]:
        """``|Adv| + epsilon`` in float64, or an error that names ``Adv``."""
        Adv = np.asarray(Adv)
        if not np.can_cast(Adv.dtype, np.float64, "same_kind"):
            raise TypeError(f"{_WHO}: Adv must hold real numbers; got dtype {Adv.dtype}")
        if Adv.shape != (batch_size,):
            raise ValueError(f"{_WHO}: Adv must have one value per transition, shape ({batch_size},); got {Adv.shape}")
        errors = np.abs(Adv.astype(np.float64))
        errors += self._epsilon
        if not errors.max(initial=0.0) < np.inf:
            raise NonFiniteError(f"{_WHO}: Adv must be finite; got {Adv[~np.isfinite(errors)][:5]}")
        self._priorities.check(errors)
        return errors


def _positive(name: str, value: Any) -> float:
    return positive_number(_WHO, name, value)
