"""An actor beside several critics: how they act and remember, and what they remember along a batch."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from triax.agents.critics import Critics, after_burn_in, with_carries, without_burn_in
from triax.agents.off_policy import Factory, Weights, fresh_weights
from triax.core import random
from triax.core.keys import Key
from triax.functions.lift import Carry
from triax.functions.sequences import unroll
from triax.learning.evaluation import Evaluated, Place, evaluate_at
from triax.learning.trajectories import rows_of
from triax.networks.unrolling import select
from triax.reward_tracing import TransitionBatch


class Memory(NamedTuple):
    """What is remembered within an episode; leaves ``[batch, ...]``, each part ``()`` without."""

    actor: Carry = ()
    critics: Carry = ()
    """``[batch, critics, ...]``: acting keeps the critics up to date, for learning from the middle of an episode."""
    noise: PyTree = ()
    """Of exploration that drifts."""

    @classmethod
    def of(cls, carry: PyTree) -> "Memory":
        """The parts of a carry."""
        return cls(*carry)

    @property
    def carry(self) -> PyTree:
        """``()`` if nothing is remembered."""
        return self if jax.tree.leaves(self) else ()


class ActorCritic:
    """An actor and its critics.

    Args:
        network: makes the actor.
        actor: a function of the state, which says what goes in and what comes out.
        critics: of the same spaces.
    """

    def __init__(self, network: Factory, actor: Any, critics: Critics) -> None:
        self._network, self._actor, self.critics = network, actor, critics

    @property
    def has_memory(self) -> bool:
        """Whether any of them remembers."""
        return self._actor.has_memory or self.critics.has_memory

    def init_actor(self, key: Key) -> Weights:
        """New weights."""
        return fresh_weights(self._network, key)

    def initial_memory(self, actor: Weights, critics: Weights, batch_size: int, key: Key) -> Memory:
        """At the start of an episode."""
        return Memory(
            self._actor._lifted.initial_carry(*actor, key, batch_size),
            self.critics.initial_carry(critics, key, batch_size),
        )

    def respond(self, weights: Weights, observation: PyTree, memory: Memory, key: Key) -> tuple[PyTree, Carry]:
        """The output of the actor ``[batch, ...]`` and its memory after it, in evaluation mode."""
        rng_observe, rng_forward = random.split(key)
        S = jax.tree.map(lambda x: x[None], self._actor.observation_preprocessor(rng_observe, observation))
        resets = jnp.zeros((1, jax.tree.leaves(S)[0].shape[1]), bool)
        unrolled = unroll(self._actor, weights, rng_forward, memory.actor, resets, (S,))
        return jax.tree.map(lambda leaf: leaf[0], unrolled.output), unrolled.carry

    def evaluate_actor(
        self,
        batch: TransitionBatch,
        weights: Weights,
        key: Key,
        *,
        at: Place = "S",
        role: str = "actor",
        is_training: bool = False,
    ) -> Evaluated:
        """The actor at the rows of a batch."""
        return evaluate_at(batch, self._actor, weights, key, name=role, at=at, is_training=is_training)

    def rows(
        self, experience: Any, key: Key, *, actors: Mapping[str, Weights], critics: Mapping[str, Weights]
    ) -> TransitionBatch:
        """A batch to learn from: of sequences the steps after the burn-in, with the memory that each role has there.

        Without memory ``experience`` is such a batch.
        """
        if not self.has_memory:
            return experience
        stored = Memory.of(experience.carry)
        carries = {**dict.fromkeys(actors, stored.actor), **dict.fromkeys(critics, stored.critics)}
        batch = rows_of(dataclasses.replace(experience, carry=(), carries=carries), who="ActorCritic")
        current = {role: after_burn_in(batch, self._actor, w, key, role=role) for role, w in actors.items()}
        current |= {role: self.critics.after_burn_in(batch, w, key, role=role) for role, w in critics.items()}
        return without_burn_in(with_carries(batch, current))


def reset_rows(done: Bool[Array, " batch"], fresh: Memory, carry: PyTree) -> PyTree:
    """The memory with fresh rows where ``done``."""
    return select(done, fresh.carry, carry)
