"""States of a training to resume from: what can be saved so, when, and how it is read back."""

import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from triax.runs.checkpoint_store import CheckpointStore
from triax.runs.checkpoints import CorruptCheckpointError

WRITING_SHARE = 0.02
"""How much of the time may go into writing states."""


@runtime_checkable
class Resumable(Protocol):
    """Whatever goes on bit for bit from its state: a replay buffer, an agent, a whole training."""

    def state_dict(self) -> dict[str, Any]:
        """``{"scalars": <what JSON can hold>, "arrays": {path: array}}``; nothing is changed by asking.

        Of a pytree: ``"arrays"`` is :func:`triax.core.leaves.named_leaves` of it.
        """
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become what gave the state, whose arrays are NumPy arrays, of typed keys their data.

        Of a pytree: :func:`triax.core.leaves.restore_tree`. Raises ``ValueError`` when it does not fit, and is as
        before then.
        """
        ...


def save_state(store: CheckpointStore, step: int, training: Resumable) -> None:
    """Writes the state as the checkpoint of a step, whole or not at all."""
    state = training.state_dict()
    store.save(step, state["arrays"], {"scalars": state["scalars"]})


def load_state(store: CheckpointStore, step: int) -> dict[str, Any]:
    """What ``state_dict`` gave at that step; raises as :func:`~triax.runs.load_checkpoint`."""
    arrays, metadata = store.load_arrays(step)
    return {"arrays": arrays, "scalars": metadata["scalars"]}


def load_last_state(
    store: CheckpointStore, skipped: Callable[[CorruptCheckpointError], None]
) -> tuple[int, dict[str, Any]] | None:
    """Step and state of the last one that can be read, ``None`` where there is none.

    ``skipped`` is told of each that is damaged; if all are, that error is raised.
    """
    steps = store.steps()
    for step in reversed(steps):
        try:
            return step, load_state(store, step)
        except CorruptCheckpointError as error:
            if step == steps[0]:
                raise
            skipped(error)
    return None


class SavingRhythm:
    """When the next state is due: ``every`` seconds after the last one, and so that writing costs a small share.

    ``clock`` gives seconds.
    """

    def __init__(self, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._next = clock() + every

    def is_due(self) -> bool:
        """Whether it is time."""
        return self._clock() >= self._next

    def run(self, save: Callable[[], Any]) -> None:
        """Save, and see from how long that takes when the next one is due."""
        began = self._clock()
        save()
        ended = self._clock()
        self._next = ended + max(self._every, (ended - began) / WRITING_SHARE)
