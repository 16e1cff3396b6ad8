"""n-step reward tracing."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from jaxtyping import ArrayLike

from triax.core.numbers import Checked, positive_int
from triax.reward_tracing.inputs import as_discount
from triax.reward_tracing.steps_ahead import steps_ahead
from triax.reward_tracing.tracer import RewardTracer, Step, transition
from triax.reward_tracing.transition_batch import TransitionBatch


class NStep(RewardTracer):
    r"""Transitions over ``n`` steps, popped in the order of time.

    .. math:: R^{(n)}_t = \sum_{k<n} \gamma^k r_{t+k}, \qquad I^{(n)}_t = \gamma^n

    Where the episode ends after ``m <= n`` steps, ``Rn`` sums what is left; ``In`` is 0 if it terminated and
    ``gamma^m`` if it was truncated, with its last observation as ``S_next``.

    With ``record_extra_info``, ``extra_info`` tells of the steps ``t..t+n`` (see
    :func:`triax.reward_tracing.steps_ahead.steps_ahead`).

    ``A_next`` and ``logP_next`` without ``s_next``: real, or a copy of ``A`` and NaN at an episode's end.
    With ``s_next`` on every step: ``None``, and no transition waits for the step after it.
    The first step added decides for good; mixing raises ``ValueError`` (details: :class:`RewardTracer`).

    Raises ``TypeError`` unless ``n`` is an int and ``gamma`` a number, and unless they are positive and in [0, 1]
    ``OutOfRangeError``, which is a ``ValueError`` and, as in coax, a ``TypeError``.
    Source: Sutton & Barto, Reinforcement Learning, 2nd ed., eq. 7.1.
    """

    n: Checked[int] = Checked(positive_int, "The number of steps; it may change between episodes.")
    gamma: Checked[float] = Checked(as_discount, "The discount factor; it may change between steps.")

    def __init__(self, n: int | np.integer, gamma: ArrayLike, record_extra_info: bool = False):
        self.n, self.gamma = n, gamma
        self.record_extra_info = bool(record_extra_info)
        super().__init__()

    def _facts(self) -> list[str]:
        return [f"n={self.n}", f"gamma={self.gamma:g}"]

    def __bool__(self) -> bool:
        if self._ended:
            return bool(self._steps)
        return len(self._steps) >= (self.n if self._traces_s_next else self.n + 1)

    def pop(self) -> TransitionBatch:
        """The oldest transition, a batch of one; ``InsufficientCacheError`` when none is ready."""
        if not self:
            raise self._refuse_pop()
        steps = list(islice(self._steps, self.n + 1))
        reaches_end = self._ended and len(steps) <= self.n
        batch = self._pop_last(steps) if reaches_end else self._pop_inner(steps)
        if self.record_extra_info:
            has_last = self._ended and len(steps) == len(self._steps)
            last = None if self._terminated else self._last_observation
            batch.extra_info = steps_ahead(steps, self.n, has_last, last)
        self._steps.popleft()
        return batch

    def _pop_last(self, steps: Sequence[Step]) -> TransitionBatch:
        Rn = self._discounted_sum(steps)
        return self._last_transition(steps[0], Rn, self.gamma ** len(steps))

    def _pop_inner(self, steps: Sequence[Step]) -> TransitionBatch:
        Rn = self._discounted_sum(steps[: self.n])
        In = self.gamma**self.n
        if self._traces_s_next:
            return transition(steps[0], Rn, In, steps[self.n - 1].s_next)
        ahead = steps[self.n]
        return transition(steps[0], Rn, In, ahead.s, ahead.a, ahead.logp)

    def _discounted_sum(self, steps: Sequence[Step]) -> float:
        total = 0.0
        for step in reversed(steps):
            total = step.r + self.gamma * total
        return total
