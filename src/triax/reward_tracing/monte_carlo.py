"""Monte Carlo reward tracing."""

from jaxtyping import ArrayLike

from triax.core.numbers import Checked
from triax.reward_tracing.inputs import as_discount
from triax.reward_tracing.tracer import RewardTracer
from triax.reward_tracing.transition_batch import TransitionBatch


class MonteCarlo(RewardTracer):
    r"""Full discounted returns, popped backwards in time once the episode has ended.

    .. math:: R_t = \sum_{k \geq 0} \gamma^k r_{t+k}

    ``In`` is 0 when the episode terminated; when it was truncated after ``k`` more steps, ``In = gamma^k``
    and ``S_next`` is its last observation.

    ``A_next`` and ``logP_next`` without ``s_next`` on ordinary steps: a copy of ``A`` and NaN, being unknown.
    With ``s_next`` on every step: ``None``.
    The first step added decides for good; mixing raises ``ValueError`` (details: :class:`RewardTracer`).

    Raises ``TypeError`` unless ``gamma`` is a number, and unless it is in [0, 1]
    ``OutOfRangeError``, which is a ``ValueError`` and, as in coax, a ``TypeError``.
    Source: Sutton & Barto, Reinforcement Learning, 2nd ed., eq. 3.8.
    """

    gamma: Checked[float] = Checked(as_discount, "The discount factor; it may change between steps.")

    def __init__(self, gamma: ArrayLike):
        self.gamma = gamma
        super().__init__()

    def _facts(self) -> list[str]:
        return [f"gamma={self.gamma:g}"]

    def reset(self) -> None:
        """Forget all cached steps."""
        super().reset()
        self._return = 0.0
        self._steps_to_end = 0

    def __bool__(self) -> bool:
        return self._ended and bool(self._steps)

    def pop(self) -> TransitionBatch:
        """The latest transition, a batch of one; ``InsufficientCacheError`` before the episode has ended."""
        if not self:
            raise self._refuse_pop()
        step, steps_to_end = self._steps[-1], self._steps_to_end + 1
        total = step.r + self.gamma * self._return
        batch = self._last_transition(step, total, self.gamma**steps_to_end)
        self._steps.pop()
        self._return, self._steps_to_end = total, steps_to_end
        if not self._steps:
            self.reset()
        return batch
