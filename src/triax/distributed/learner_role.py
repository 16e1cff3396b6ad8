"""The learner of a distributed run, whatever process it is in."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PyTree, UInt

from triax.agents.off_policy import PRIORITIES, OffPolicyAgent
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.leaves import named_leaves, restore_tree, to_numpy
from triax.reward_tracing import TransitionBatch

Arrays = dict[str, np.ndarray]
"""The state of an agent as it travels: its leaves by name."""
Version = tuple[int, list[Any]]
"""The number of such a state, and in a list the reference to it: so Ray does not fetch it for each call."""


class Learned(NamedTuple):
    """What a call of the learner led to, beside the new state."""

    updates: int
    """Updates done so far."""
    errors: Float[np.ndarray, "batches batch"]
    """Absolute TD errors of what was learned from."""
    metrics: dict[str, float]
    """Means over the updates of the call."""


class Learner:
    """An agent that learns from batches. What it draws follows from ``seed`` and the number of the update.

    Args:
        agent: an off-policy agent whose replay is prioritized.
        seed: of its weights, unless ``state`` is given.
        state: ``(arrays, updates)`` to go on from.
    """

    def __init__(self, agent: OffPolicyAgent, seed: int, state: tuple[Mapping[str, np.ndarray], int] | None = None):
        self._agent, key = agent, jax.random.key(seed)
        self._key = fold_name(key, "learner")
        self._state, self._updates = jax.jit(agent.init)(fold_name(key, "agent")), 0
        if state is not None:
            self._state, self._updates = restore_tree(self._state, state[0], "Learner"), state[1]

    def arrays(self) -> Arrays:
        """The agent's state."""
        return to_numpy(named_leaves(self._state))

    def learn(self, batches: TransitionBatch) -> Learned:
        """One update from each batch; leaves ``[batches, batch, ...]``."""
        self._state, metrics = _learn(self._agent, self._state, batches, self._key, np.uint32(self._updates))
        self._updates += batches.Rn.shape[0]
        metrics = jax.device_get(metrics)
        errors = np.abs(metrics.pop(PRIORITIES))
        return Learned(self._updates, errors, {name: float(np.mean(value)) for name, value in metrics.items()})


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _learn(
    agent: OffPolicyAgent, state: PyTree, batches: TransitionBatch, key: Key, updates: UInt[Array, ""]
) -> tuple[PyTree, dict[str, Any]]:
    def update(carried: tuple[PyTree, Any], batch: TransitionBatch) -> tuple[tuple[PyTree, Any], dict[str, Any]]:
        state, number = carried
        state, metrics = agent.learn(state, batch, random.fold_in(key, number))
        return (state, number + 1), metrics

    (state, _), metrics = jax.lax.scan(update, (state, updates), batches)
    return state, metrics
