"""What an agent is: a few pure functions that loops call, on batches of environments."""

from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.core.keys import Key
from triax.core.sharding import with_rows_split

S = TypeVar("S")


@runtime_checkable
class Agent(Protocol[S]):
    """Pure functions of the agent's state ``S``, a pytree; run them under ``jit``, ``vmap`` and ``scan``.

    An agent itself is immutable and hashable, since compiled loops close over it. ``observation`` is a batch of
    observations as an environment shows them, leaves ``[batch, ...]``; ``action`` one of members of its action space.
    """

    def init(self, key: Key) -> S:
        """Weights, optimizer states, counters."""
        ...

    def initial_carry(self, state: S, batch_size: int, key: Key) -> PyTree:
        """The memory at the start of an episode, leaves ``[batch, ...]``; ``()`` without memory."""
        ...

    def reset_carry(self, state: S, carry: PyTree, done: Bool[Array, " batch"], key: Key) -> PyTree:
        """The memory with rows where ``done`` as at the start of an episode."""
        ...

    def act(self, state: S, observation: PyTree, carry: PyTree, key: Key, explore: bool = True) -> tuple:
        """``(action, carry, extras)``: what to do, the memory after it, and what ``learn`` wants to know of it.

        ``explore`` is static: ``False`` gives the greedy action.
        """
        ...

    def learn(self, state: S, experience: PyTree, key: Key) -> tuple[S, dict[str, Any]]:
        """``(state, metrics)`` after learning from a ``Rollout`` (on-policy) or a batch of replay (off-policy)."""
        ...


class Rollout(NamedTuple):
    """What a batch of environments did for some steps; leaves ``[time, batch, ...]`` unless said otherwise."""

    observation: PyTree
    """What was acted on."""
    action: PyTree
    reward: PyTree
    terminated: Bool[Array, "time batch"]
    truncated: Bool[Array, "time batch"]
    next_observation: PyTree
    """What the action led to: of an episode that ended, its own final observation."""
    extras: PyTree
    """What ``act`` told besides."""
    carry: PyTree
    """The memory before the first step, leaves ``[batch, ...]``."""
    last_carry: PyTree
    """The memory after the last step, leaves ``[batch, ...]``: not reset where the episode ended."""
    starts: Bool[Array, " batch"]
    """Where the first observation begins an episode, with a memory that is fresh."""
    weight: Float[Array, "time batch"] | None = None
    """How much each step counts; ``None`` for one. A vector environment that resets in the next step has steps that
    nobody takes: they weigh 0 and are truncated, so that no return runs through them."""
    metrics: PyTree = ()
    """What the environments measured."""

    @property
    def resets(self) -> Bool[Array, "time batch"]:
        """Where a step begins an episode, as ``unroll`` wants it: memory then starts from today's weights."""
        done = self.terminated | self.truncated
        return jnp.concatenate([self.starts[None], done[:-1]])

    def environments(self, rows: Int[Array, " some"]) -> "Rollout":
        """What some of the environments did; split over devices anew where a program runs on several."""
        per_environment, over_time = self._parts()
        taken = jax.tree.map(lambda leaf: jnp.take(leaf, rows, axis=0), per_environment)
        over_time = jax.tree.map(lambda leaf: jnp.take(leaf, rows, axis=1), over_time)
        return over_time._replace(**taken).split()

    def split(self) -> "Rollout":
        """The same, with its environments split over the devices that a program runs on."""
        per_environment, over_time = self._parts()
        num_envs = self.starts.shape[0]
        return with_rows_split(over_time, num_envs, axis=1)._replace(**with_rows_split(per_environment, num_envs))

    def _parts(self) -> tuple[dict[str, Any], "Rollout"]:
        """What has leaves ``[batch, ...]``, and the rest, with leaves ``[time, batch, ...]``."""
        names = ("carry", "last_carry", "starts")
        return {name: getattr(self, name) for name in names}, self._replace(**dict.fromkeys(names, ()))
