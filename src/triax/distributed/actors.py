"""The roles as Ray actors: processes around :class:`Rollouts`, :class:`Replay` and :class:`Learner`, nothing more."""

import os
from typing import Any

import numpy as np
import ray
from jaxtyping import Float, Int

from triax.distributed.journal import Entry
from triax.distributed.learner_role import Arrays, Learned, Learner, Version
from triax.distributed.recipe import prepare_process, unpickled
from triax.distributed.replay_role import Replay
from triax.distributed.rollout_role import Gathered, Rollouts
from triax.reward_tracing import TransitionBatch

Chunk = tuple[TransitionBatch, Float[np.ndarray, " n"]]


class RolloutActor:
    """A rollout worker: one thread, on the CPU."""

    def __init__(self, paths: list[str], recipe: bytes, num_envs: int, seed: int, epsilon: float) -> None:
        prepare_process(paths, one_thread=True)
        made = unpickled(recipe)
        self._rollouts = Rollouts(made.agent(), made.envs(num_envs), seed, epsilon)
        self._version = -1

    def ready(self) -> int:
        """The process."""
        return os.getpid()

    def gather(self, num_steps: int, version: Version) -> tuple[Chunk | None, Gathered]:
        """Act with that version."""
        self._load(version)
        batch, errors, gathered = self._rollouts.gather(num_steps)
        return None if batch is None else (batch, errors), gathered

    def evaluate(self, num_episodes: int, seed: int, version: Version) -> Float[np.ndarray, " episodes"]:
        """Returns of that version without exploring."""
        self._load(version)
        return self._rollouts.evaluate(num_episodes, seed)

    def _load(self, version: Version) -> None:
        number, reference = version
        if number != self._version:
            self._rollouts.load(_fetch(reference))
            self._version = number


class ReplayActor:
    """Replay: one thread, on the CPU."""

    def __init__(self, paths: list[str], recipe: bytes, capacity: int, seed: int, first_id: int) -> None:
        prepare_process(paths, one_thread=True)
        made = unpickled(recipe)
        self._replay = Replay(made.agent().replay, capacity, seed, first_id)

    def ready(self) -> int:
        """The process."""
        return os.getpid()

    def add(self, chunk: Chunk) -> None:
        """Store it."""
        self._replay.add(*chunk)

    def sample(self, num_batches: int) -> tuple[TransitionBatch, Int[np.ndarray, "batches batch"]]:
        """Batches and numbers."""
        return self._replay.sample(num_batches)

    def set_errors(self, ids: Int[np.ndarray, " n"], errors: Float[np.ndarray, " n"]) -> None:
        """What was learned."""
        self._replay.set_errors(ids, errors)

    def restore(self, base: list[Any], entries: list[Entry], known: tuple[np.ndarray, np.ndarray]) -> None:
        """Hold what a lost one held. ``base`` is a reference to its state at the beginning and an example, or empty."""
        state, example = _fetch(base) if base else (None, None)
        self._replay.restore(state, example, (_fetch([entry.rows]) for entry in entries), known)

    def state_dict(self) -> dict[str, Any]:
        """Of the buffer."""
        return self._replay.state_dict()


class LearnerActor:
    """The learner, on whatever device JAX finds."""

    def __init__(self, paths: list[str], recipe: bytes, seed: int, version: Version | None, updates: int) -> None:
        prepare_process(paths, one_thread=False)
        state = None if version is None else (_fetch(version[1]), updates)
        self._learner = Learner(unpickled(recipe).agent(), seed, state)

    def ready(self) -> int:
        """The process."""
        return os.getpid()

    def arrays(self) -> Arrays:
        """The agent's state."""
        return self._learner.arrays()

    def learn(self, batches: TransitionBatch) -> tuple[Arrays, Learned]:
        """The state after an update from each batch."""
        learned = self._learner.learn(batches)
        return self._learner.arrays(), learned


def _fetch(reference: list[Any]) -> Any:
    """What the reference in the list is to."""
    return ray.get(reference[0])
