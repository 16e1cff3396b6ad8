"""What reward tracers share: the steps of the running episode that are not yet part of a transition."""

import copy
from abc import abstractmethod
from collections import deque
from typing import NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import ArrayLike, PyTree

from triax.core.errors import EpisodeDoneError, InsufficientCacheError, NonFiniteError
from triax.core.sealed import Sealed
from triax.reward_tracing.inputs import LARGEST, as_logp, as_number, as_shared_row, as_truth, as_weight, check_alike
from triax.reward_tracing.transition_batch import TransitionBatch


class Step(NamedTuple):
    """One step in the cache: arrays with a batch axis of one, read-only because transitions share them."""

    s: PyTree
    a: PyTree
    r: float
    logp: float
    w: float
    s_next: PyTree


T = TypeVar("T", bound="RewardTracer")


class RewardTracer(Sealed):
    """Turns single steps into transitions: ``add`` a step, then ``while tracer: batch = tracer.pop()``.

    An episode ends with ``done`` (terminated: no bootstrap) or with ``truncated`` (bootstraps from its own
    last observation, ``s_next``); the next ``add`` starts another one, once the tracer is emptied.

    The first step ever added decides, for the tracer's life, what transitions look like. Without
    ``s_next``, ``A_next`` and ``logP_next`` come from the step ``n`` later; at an episode's end they are
    unknown, so ``A_next`` repeats ``A`` and ``logP_next`` is NaN. With ``s_next`` (then due on every step
    that does not terminate) a transition is ready as soon as its rewards are there, and ``A_next`` and
    ``logP_next`` are ``None``.
    """

    def __init__(self) -> None:
        self._traces_s_next: bool | None = None
        self.reset()

    def reset(self) -> None:
        """Forget all cached steps."""
        self._steps: deque[Step] = deque()
        self._ended = False
        self._terminated = False
        self._last_observation: PyTree = None

    def __len__(self) -> int:
        return len(self._steps)

    def __copy__(self: T) -> T:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        twin._steps = self._steps.copy()  # steps themselves are read-only
        return twin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([*self._facts(), f'{len(self)} steps cached'])})"

    def _facts(self) -> list[str]:
        """What a subclass prints of its arguments."""
        return []

    @abstractmethod
    def __bool__(self) -> bool:
        """Whether ``pop`` would succeed."""

    @abstractmethod
    def pop(self) -> TransitionBatch:
        """The next transition, a batch of one; ``InsufficientCacheError`` when there is none.

        Raises ``NonFiniteError`` when the sum of its rewards is beyond float32; the cache is unchanged then.
        """

    def add(
        self,
        s: PyTree,
        a: PyTree,
        r: ArrayLike,
        done: ArrayLike,
        logp: ArrayLike = 0.0,
        w: ArrayLike = 1.0,
        *,
        truncated: ArrayLike = False,
        s_next: PyTree = None,
    ) -> None:
        """Add one step: from ``s``, action ``a`` gave reward ``r`` and, if passed, observation ``s_next``.

        ``done`` means terminated and wins over ``truncated``; a truncated step needs ``s_next``. ``logp``
        is the log-propensity of ``a`` in nats, ``w`` a positive sample weight. Everything is copied.

        Raises ``EpisodeDoneError`` while steps of a finished episode are cached, ``TypeError`` and
        ``ValueError`` for what is no number that is finite in float32, for a truth value as ``logp``, for shapes
        that change and for ``s_next`` on some steps only. A refused step changes nothing.
        """
        who = type(self).__name__
        if self._ended and self._steps:
            raise EpisodeDoneError(
                f"{who}.add: the episode is done, but {len(self._steps)} of its steps are still cached."
                " Drain it first (`while tracer: tracer.pop()`) or call reset()."
            )
        terminated = as_truth(who, "done", done)
        ended = as_truth(who, "truncated", truncated) or terminated
        traces_s_next = self._check_s_next(s_next is not None, ended, terminated)
        state = as_shared_row(who, "s", s)
        next_state = None if s_next is None else as_shared_row(who, "s_next", s_next)
        step = Step(
            state,
            as_shared_row(who, "a", a),
            as_number(who, "r", r),
            as_logp(who, "logp", logp),
            as_weight(who, "w", w),
            next_state,
        )
        self._check_shapes(who, step)
        self._traces_s_next = traces_s_next
        self._steps.append(step)
        self._ended, self._terminated = ended, terminated
        self._last_observation = next_state if ended else None

    def flush(self) -> TransitionBatch:
        """All transitions that are ready, as one batch in the order of ``pop``.

        Raises ``InsufficientCacheError`` when there is none, and what ``pop`` raises; the cache is unchanged then.
        """
        twin = copy.copy(self)
        singles = [twin.pop()]
        while twin:
            singles.append(twin.pop())
        vars(self).update(vars(twin))
        batch = jax.tree.map(lambda *rows: np.concatenate(rows), *singles)
        batch.idx = np.arange(len(singles), dtype=np.int32)
        return batch

    def _check_s_next(self, given: bool, ended: bool, terminated: bool) -> bool:
        """Whether this tracer's steps come with ``s_next``; ``ValueError`` when this one breaks the rule."""
        who = f"{type(self).__name__}.add"
        if ended and not terminated and not given:
            raise ValueError(
                f"{who}: a truncated step bootstraps from its last observation: pass s_next, the"
                " observation that env.step returned"
            )
        if self._traces_s_next is None:
            return given
        if not ended and given != self._traces_s_next:
            before, now = ("with", "without") if self._traces_s_next else ("without", "with")
            raise ValueError(
                f"{who}: this tracer was started {before} s_next and this step comes {now} it, which would"
                " change the structure of its transitions. Pass s_next on every step, or only where an"
                " episode ends (and not on the very first step)."
            )
        return self._traces_s_next

    def _check_shapes(self, who: str, step: Step) -> None:
        if step.s_next is not None:
            check_alike(who, "s_next", step.s_next, "s", step.s)
        if self._steps:
            check_alike(who, "s", step.s, "the previous s", self._steps[-1].s)
            check_alike(who, "a", step.a, "the previous a", self._steps[-1].a)

    def _refuse_pop(self) -> InsufficientCacheError:
        return InsufficientCacheError(
            f"{type(self).__name__}: no transition is ready; {len(self._steps)} steps are cached."
            " Check `bool(tracer)` before pop() or flush()."
        )

    def _last_transition(self, step: Step, Rn: float, discount: float) -> TransitionBatch:
        """From ``step`` to its episode's end; ``discount`` is gamma to the number of steps until then."""
        S_next = step.s if self._last_observation is None else self._last_observation
        In = 0.0 if self._terminated else discount
        if self._traces_s_next:
            return transition(step, Rn, In, S_next)
        return transition(step, Rn, In, S_next, step.a, np.nan)


_FIRST = np.zeros(1, np.int32)
_FIRST.flags.writeable = False


def transition(
    step: Step, Rn: float, In: float, S_next: PyTree, A_next: PyTree = None, logp_next: float = 0.0
) -> TransitionBatch:
    """A batch of one that starts at ``step``; without ``A_next``, ``logP_next`` is absent too."""
    if not -LARGEST <= Rn <= LARGEST:
        raise NonFiniteError(
            f"reward tracing: the sum of discounted rewards, {Rn:.6g}, is beyond float32. Scale the rewards down; the"
            " tracer keeps its steps until reset()."
        )
    # One array cut in five costs half of five arrays.
    columns = np.array((step.logp, Rn, In, step.w, logp_next), np.float32)
    return TransitionBatch.from_values(
        (
            step.s,
            step.a,
            columns[0:1],
            columns[1:2],
            columns[2:3],
            S_next,
            A_next,
            None if A_next is None else columns[4:5],
            columns[3:4],
            _FIRST,
            None,
        )
    )
