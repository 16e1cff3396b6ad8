"""Replay of sequences, for networks with memory."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from triax.core.errors import InsufficientCacheError
from triax.core.numbers import positive_int
from triax.experience_replay.batch import named_arrays
from triax.experience_replay.buffer import ReplayBuffer
from triax.experience_replay.ring import Ring

_WHO = "SequenceReplayBuffer"
_FIELDS = ("terminated", "truncated", "carry", "W")


class SequenceReplayBuffer(ReplayBuffer):
    """The last steps of ``num_streams`` environments, of which ``sample`` returns sequences within one episode.

    A step is a dataclass pytree with the fields ``terminated``, ``truncated``, ``carry`` (what the network
    remembered before it) and ``W``, such as ``triax.reward_tracing.Trajectory`` without its time axis: leaves
    are ``[num_streams, ...]``. A sequence is the same with leaves ``[sequence_length, batch, ...]`` and the carry
    of its first step, ``[batch, ...]``.

    A sequence starts at any step, with equal probability, and never joins two episodes or the seam of the ring:
    behind the end of its episode the last step is repeated with weight ``W = 0``. Elsewhere ``W`` is what was
    stored, or 1.

    ``capacity`` counts the steps of all streams. Raises ``TypeError`` unless the numbers are positive ints, and
    ``ValueError`` when no sequence fits. Source: Kapturowski et al. 2019, R2D2, section 2.3 (stored state).
    """

    def __init__(
        self,
        capacity: int | np.integer,
        sequence_length: int | np.integer,
        num_streams: int | np.integer = 1,
        random_seed: int | None = None,
    ):
        self._sequence_length = positive_int(_WHO, "sequence_length", sequence_length)
        self._num_streams = positive_int(_WHO, "num_streams", num_streams)
        num_steps = positive_int(_WHO, "capacity", capacity) // self.num_streams
        if num_steps < self.sequence_length:
            raise ValueError(
                f"{_WHO}: capacity must be at least sequence_length * num_streams,"
                f" {self.sequence_length * self.num_streams}; got {capacity}"
            )
        super().__init__(num_steps * self.num_streams, random_seed)

    @property
    def sequence_length(self) -> int:
        """Number of steps of a sampled sequence."""
        return self._sequence_length

    @property
    def num_streams(self) -> int:
        """Number of environments."""
        return self._num_streams

    def _facts(self) -> list[str]:
        return [f"sequence_length={self.sequence_length}", f"num_streams={self.num_streams}"]

    @property
    def capacity(self) -> int:
        """Number of steps that are kept, those of all streams."""
        return self._ring.capacity * self.num_streams

    def __len__(self) -> int:
        return self._ring.size * self.num_streams

    def __iter__(self) -> Iterator[Any]:
        """What was added, oldest first."""
        for step in super().__iter__():
            yield jax.tree.map(lambda leaf: leaf[0], step)

    def add(self, step: Any) -> None:
        """Store a copy of the next step of every stream; the oldest beyond ``capacity`` are dropped.

        Raises ``TypeError`` for anything but a step, ``ValueError`` naming the leaf that does not fit. A whole
        trajectory is added step by step, each with the carry before it, of which a trajectory has the first only::

            steps = dataclasses.replace(trajectory, carry=carries)  # leaves [time, batch, ...]
            for t in range(steps.num_steps):
                buffer.add(jax.tree.map(lambda leaf: leaf[t], steps))
        """
        self._num_rows(step)
        shape = np.shape(step.terminated)
        if len(shape) != 1:
            raise ValueError(
                f"{_WHO}.add: a step of all {self.num_streams} streams at once is expected, terminated of shape"
                f" [{self.num_streams}]; got {list(shape)}. Add a trajectory [time, batch] step by step, with the carry"
                " before each step: `for t in range(time): buffer.add(jax.tree.map(lambda leaf: leaf[t],"
                " dataclasses.replace(trajectory, carry=carries)))`."
            )
        if not self._ring.is_allocated:
            self._check_first(step)
        self._append(_as_row(step))

    def sample(self, batch_size: int | np.integer = 32) -> Any:
        """Sequences, drawn with replacement; ``InsufficientCacheError`` until one has been stored."""
        batch_size = positive_int(f"{_WHO}.sample", "batch_size", batch_size)
        ring, length = self._ring, self.sequence_length
        num_starts = ring.size - length + 1
        if num_starts < 1:
            raise InsufficientCacheError(
                f"{_WHO}.sample: sequence_length is {length}, but only {ring.size} steps of each stream are stored"
            )
        starts = ring.first_id + self._rng.integers(num_starts, size=batch_size)
        streams = self._rng.integers(self.num_streams, size=batch_size)
        ids = starts + np.arange(length)[:, None]
        return self._sequences(ids % ring.capacity * self.num_streams + streams)

    def load_state_dict(self, state: dict[str, Any], example: Any = None) -> None:
        """Like :meth:`ReplayBuffer.load_state_dict`; ``example`` is a step."""
        if example is not None:
            self._check_first(example)
            example = _as_row(example)
        super().load_state_dict(state, example)

    def _sequences(self, places: Int[np.ndarray, "time batch"]) -> Any:
        """The sequences at these places of the flattened ring, cut where an episode ends."""
        ends = (_flat(self._ring.column(name)).take(places).astype(bool) for name in ("terminated", "truncated"))
        over = np.logical_or.accumulate(np.logical_or(*ends))
        is_padding = np.concatenate([np.zeros_like(over[:1]), over[:-1]])
        last = len(places) - 1 - is_padding.sum(axis=0)
        places = np.where(is_padding, places[last, np.arange(last.size)], places)

        def pick(name: str, column: np.ndarray) -> np.ndarray:
            is_carry = name.split("/")[0] == "carry"
            return _flat(column).take(places[0] if is_carry else places, axis=0)

        batch = self._ring.gather(pick)
        weights = (~is_padding).astype(np.float32)
        return dataclasses.replace(batch, W=weights if batch.W is None else batch.W * weights)

    def _new_ring(self, capacity: int | np.integer) -> Ring:
        return Ring(_WHO, capacity // self.num_streams, share_frames=False)

    def _num_rows(self, batch: Any) -> int:
        missing = [name for name in _FIELDS if not hasattr(batch, name)]
        if missing or not dataclasses.is_dataclass(batch):
            raise TypeError(
                f"{_WHO}: step must be a dataclass with {', '.join(_FIELDS)}, like Trajectory;"
                f" got {type(batch).__name__} without {', '.join(missing) or 'being one'}"
            )
        return 1

    def _check_first(self, step: Any) -> None:
        self._num_rows(step)
        named_arrays(_WHO, step, self.num_streams)


def _as_row(step: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], step)


def _flat(column: np.ndarray) -> np.ndarray:
    """Steps and streams on one axis: a view."""
    return column.reshape(-1, *column.shape[2:])
