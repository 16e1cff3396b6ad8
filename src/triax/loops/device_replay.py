"""Replay on the device: preallocated rows that a compiled loop writes in place and samples by index."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.numbers import check_count, check_number
from triax.loops.device_sum_tree import DeviceSumTree, Levels
from triax.loops.packed_rows import PackedRows
from triax.reward_tracing import Trajectory, TransitionBatch


class Experience(NamedTuple):
    """One step of each of ``num_envs`` environments: leaves ``[num_envs, ...]``."""

    observation: PyTree
    action: PyTree
    reward: Float[Array, " envs"]
    terminated: Bool[Array, " envs"]
    truncated: Bool[Array, " envs"]
    next_observation: PyTree
    """What the action led to: of an episode that ended, its own final observation."""
    log_prob: Any = None
    """Of the action, in nats; ``None`` where nobody reads it."""
    carry: PyTree = ()
    """The memory that acted on ``observation``; ``()`` without memory."""
    weight: Float[Array, " envs"] | None = None
    """How much the step counts, ``None`` for one: 0 where nobody took it. Such a step has no reward and is truncated,
    so that no return runs through it and memory is reset after it."""


class Cursor(NamedTuple):
    """Where the ring is, counted in rows of one step of all environments; the same for all seeds of a ``vmap``."""

    position: Int[Array, ""]
    """The row that is written next."""
    size: Int[Array, ""]
    """Rows that are filled."""


class Priorities(NamedTuple):
    """The tree of ``priority^alpha``, and the largest one so far, which new transitions get."""

    levels: Levels
    largest: Float[Array, ""]


class Stored(NamedTuple):
    """What a replay holds: ``num_steps * num_envs`` rows of ``Experience``, and priorities, ``()`` without."""

    rows: PackedRows
    priorities: Any


@dataclass(frozen=True)
class DeviceReplay:
    """Pure functions on ``(Stored, Cursor)``; donate both, and a step touches only what it writes and reads.

    Sampling draws windows of ``window`` steps of one environment that lie in the buffer as a whole, with replacement.
    Without ``sequences`` a window is folded into one n-step transition, which ends where its episode ends: with its
    own final observation, and bootstrapping unless it terminated. With ``sequences`` it is a ``Trajectory`` with the
    memory that was stored at its start, and may hold several episodes.

    Steps that weigh 0 are never drawn in proportion to priorities. Uniform draws that hit one are drawn again, a few
    times: a batch is then as large as it seems, also for learning that does not look at weights. What is left weighs
    0 in ``W``, and so does each such step of a sequence; the others weigh more for it, so that a mean of ``W * x`` is
    one over the steps that count.

    Args:
        capacity: transitions to keep; the steps of ``num_envs`` environments that fit, so rounded down.
        num_envs: environments that write side by side.
        window: steps of a return, or of a sequence with its burn-in.
        gamma: discount factor.
        sequences: sample sequences instead of transitions.
        burn_in: steps of a sequence that only bring memory up to date.
        alpha: exponent of priorities; ``None`` samples uniformly (Schaul et al. 2016, arXiv:1511.05952).
        beta: exponent of the importance weights of prioritized samples.
        next_actions: transitions come with the action that followed, ``logP_next`` NaN where none did since the episode
            was truncated; one more step of each window has to be in the buffer.

    Raises:
        ValueError: the buffer cannot hold a window, or a number is out of range.
    """

    capacity: int
    num_envs: int = 1
    window: int = 1
    gamma: float = 0.99
    sequences: bool = False
    burn_in: int = 0
    alpha: float | None = None
    beta: float = 0.4
    next_actions: bool = False

    def __post_init__(self) -> None:
        if self.num_envs < 1 or self.window < 1:
            raise ValueError(
                f"DeviceReplay: num_envs and window must be positive; got {self.num_envs} and {self.window}."
            )
        if self.num_steps < self.span:
            raise ValueError(
                f"DeviceReplay: capacity must hold {self.span} steps of {self.num_envs} environments,"
                f" {self.span * self.num_envs} transitions; got {self.capacity}."
            )
        if not 0 <= self.burn_in < self.window:
            raise ValueError(
                f"DeviceReplay: burn_in must leave steps of the window of {self.window}; got {self.burn_in}."
            )
        check_count("DeviceReplay", "burn_in", self.burn_in, low=0)
        check_number("DeviceReplay", "gamma", self.gamma, low=0, high=1)
        if self.alpha is not None and not (self.alpha > 0 and self.beta >= 0):
            raise ValueError(
                f"DeviceReplay: alpha must be positive and beta not negative; got {self.alpha} and {self.beta}."
            )

    @property
    def num_steps(self) -> int:
        """Rows of the ring."""
        return self.capacity // self.num_envs

    @property
    def span(self) -> int:
        """Steps that must be in the buffer to draw a window."""
        return self.window + (self.next_actions and not self.sequences)

    @property
    def _tree(self) -> DeviceSumTree:
        return DeviceSumTree(self.num_steps * self.num_envs)

    # ------------------------------------------------------------------ writing

    def init(self, example: Experience) -> tuple[Stored, Cursor]:
        """An empty buffer for experience of these shapes and dtypes; ``jax.ShapeDtypeStruct`` leaves will do."""
        rows = PackedRows.empty(example, self.num_steps)
        priorities = () if self.alpha is None else Priorities(self._tree.init(), jnp.ones((), jnp.float32))
        # Not one zero twice: a buffer is donated once.
        return Stored(rows, priorities), Cursor(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))

    def add(self, stored: Stored, cursor: Cursor, experience: Experience) -> tuple[Stored, Cursor]:
        """The buffer with one more step of all environments, which overwrites the oldest when it is full."""
        rows = stored.rows.write(cursor.position, experience)
        after = Cursor((cursor.position + 1) % self.num_steps, jnp.minimum(cursor.size + 1, self.num_steps))
        priorities = stored.priorities
        if self.alpha is not None:
            priorities = self._follow(priorities, rows, cursor, after)
        return Stored(rows, priorities), after

    def cut(self, stored: Stored, cursor: Cursor) -> Stored:
        """The buffer with the episodes under way truncated after the newest step, since other ones will follow."""
        step = (cursor.position - 1) % self.num_steps
        newest = stored.rows.take(step * self.num_envs + jnp.arange(self.num_envs, dtype=jnp.int32))
        rows = stored.rows.write(step, newest._replace(truncated=~newest.terminated))
        return stored._replace(rows=rows)

    def _follow(self, priorities: Priorities, rows: PackedRows, cursor: Cursor, after: Cursor) -> Priorities:
        """Windows that begin in the overwritten row are gone; those that the new row completes can be drawn."""
        envs, tree = jnp.arange(self.num_envs, dtype=jnp.int32), self._tree
        levels, none = priorities.levels, jnp.zeros(self.num_envs, jnp.float32)
        complete = (cursor.position - (self.span - 1)) % self.num_steps
        index = complete * self.num_envs + envs
        new = jnp.where(after.size >= self.span, priorities.largest, none)
        counts = self._counts(rows, index)
        new = new if counts is None else jnp.where(counts, new, none)
        if self.span > 1:
            levels = tree.write(levels, cursor.position * self.num_envs + envs, none)
        return priorities._replace(levels=tree.write(levels, index, new))

    # ------------------------------------------------------------------ sampling

    def num_windows(self, cursor: Cursor) -> Int[Array, ""]:
        """Windows that can be drawn; sampling before there is one gives rows of zeros."""
        return jnp.maximum(cursor.size - (self.span - 1), 0) * self.num_envs

    def sample(self, stored: Stored, cursor: Cursor, key: Key, batch_size: int) -> TransitionBatch | Trajectory:
        """Windows drawn with replacement; ``idx`` of a batch tells where they begin, for ``set_priorities``.

        Sequences are ``[window, batch_size]``; see :meth:`starts` for their indices.
        """
        index, weights = self.starts(stored, cursor, key, batch_size)
        return self.windows(stored, index, weights)

    def starts(
        self, stored: Stored, cursor: Cursor, key: Key, batch_size: int
    ) -> tuple[Int[Array, " batch"], Float[Array, " batch"]]:
        """Where windows begin, and their importance weights, at most 1."""
        if self.alpha is None:
            return self._uniform(stored.rows, cursor, key, batch_size), jnp.ones(batch_size, jnp.float32)
        levels, tree = stored.priorities.levels, self._tree
        strata = jnp.arange(batch_size, dtype=jnp.float32) + random.uniform(key, (batch_size,))
        index = tree.find(levels, strata / batch_size)
        weights = jnp.maximum(tree.values(levels, index), jnp.finfo(jnp.float32).tiny) ** -self.beta
        return index, weights / jnp.max(weights)

    def _uniform(self, rows: PackedRows, cursor: Cursor, key: Key, batch_size: int) -> Int[Array, " batch"]:
        """Every window as likely as the others, of those in which something counts."""
        windows = jnp.maximum(self.num_windows(cursor), 1)
        oldest = (cursor.position - cursor.size) * self.num_envs

        def draw(key: Key, shape: tuple[int, ...]) -> Int[Array, "*shape"]:
            # One draw where randint makes three; a window is likelier by windows / 2**32 at most.
            place = (random.bits(key, shape, jnp.uint32) % windows.astype(jnp.uint32)).astype(jnp.int32)
            return (oldest + place) % (self.num_steps * self.num_envs)

        first, again = draw(key, (batch_size,)), draw(fold_name(key, "again"), (REDRAWS, batch_size))
        candidates = jnp.concatenate([first[None], again])
        counts = self._counts(rows, candidates.reshape(-1))
        if counts is None:
            return first
        place = jnp.argmax(counts.reshape(candidates.shape), axis=0)
        return jnp.take_along_axis(candidates, place[None], axis=0)[0]

    def _counts(self, rows: PackedRows, index: Int[Array, " batch"]) -> Bool[Array, " batch"] | None:
        """In which windows there is a step to learn from; ``None`` if each step of all counts."""
        steps = slice(self.burn_in, None) if self.sequences else slice(1)
        weight = rows.take(self._rows_of(index)[steps], lambda row: row.weight)
        return None if weight is None else jnp.any(weight > 0, axis=0)

    def windows(
        self, stored: Stored, index: Int[Array, " batch"], weights: Float[Array, " batch"]
    ) -> TransitionBatch | Trajectory:
        """What begins at each index."""
        if self.sequences:
            return self._sequences(stored.rows, index, weights)
        return self._transitions(stored.rows, index, weights)

    def set_priorities(self, stored: Stored, index: Int[Array, " batch"], priorities: Float[Array, " batch"]) -> Stored:
        """The buffer with new priorities of windows, absolute TD errors; zero becomes small, NaN the largest so far."""
        if self.alpha is None:
            return stored
        levels, largest = stored.priorities
        raised = (jnp.abs(priorities) + SMALLEST_PRIORITY) ** self.alpha
        highest = np.float32(np.finfo(np.float32).max / (2 * self._tree.capacity))  # the sum of all stays finite
        raised = jnp.where(jnp.isfinite(raised), jnp.minimum(raised, highest), largest)
        levels = self._tree.write(levels, index, raised)
        return stored._replace(priorities=Priorities(levels, jnp.maximum(largest, jnp.max(raised))))

    def _rows_of(self, index: Int[Array, " batch"]) -> Int[Array, "window batch"]:
        """The rows of windows, time first."""
        steps = jnp.arange(self.window, dtype=jnp.int32)[:, None] * self.num_envs
        return (index[None] + steps) % (self.num_steps * self.num_envs)

    def _transitions(
        self, rows: PackedRows, index: Int[Array, " batch"], weights: Float[Array, " batch"]
    ) -> TransitionBatch:
        if self.window == 1:
            first = rows.take(index, lambda row: row._replace(truncated=None, carry=()))
            Rn, In = first.reward, jnp.where(first.terminated, 0.0, self.gamma)
            S_next, last = first.next_observation, index
        else:
            skipped = ("reward", "terminated", "truncated", "next_observation", "carry")
            first = rows.take(index, lambda row: row._replace(**dict.fromkeys(skipped)))
            last, Rn, In = self._n_step(rows, index)
            S_next = rows.take(last, lambda row: row.next_observation)
        A_next, logP_next = self._following(rows, last) if self.next_actions else (None, None)
        log_prob = jnp.zeros_like(Rn) if first.log_prob is None else first.log_prob
        weights = weights if first.weight is None else weights * _with_mean_one(first.weight, first.weight)
        return TransitionBatch.from_values(
            (first.observation, first.action, log_prob, Rn, In, S_next, A_next, logP_next, weights, index, None)
        )

    def _following(self, rows: PackedRows, last: Int[Array, " batch"]) -> tuple[PyTree, Float[Array, " batch"]]:
        """The actions after the rows ``last`` and their log-probabilities, NaN where a new episode began instead."""
        after = (last + self.num_envs) % (self.num_steps * self.num_envs)
        action, log_prob = rows.take(after, lambda row: (row.action, row.log_prob))
        terminated, truncated = rows.take(last, lambda row: (row.terminated, row.truncated))
        known = jnp.zeros(last.shape, jnp.float32) if log_prob is None else log_prob
        return action, jnp.where(truncated | terminated, jnp.nan, known)

    def _n_step(self, rows: PackedRows, index: Int[Array, " batch"]) -> tuple:
        """The row that ends each return, the return without bootstrap, the factor of what follows."""
        at = self._rows_of(index)
        reward, terminated, truncated = rows.take(at, lambda row: (row.reward, row.terminated, row.truncated))
        done = (terminated | truncated).astype(jnp.int32)
        alive = jnp.cumsum(done, axis=0) - done == 0  # up to and including the step that ends the episode
        taken = jnp.sum(alive, axis=0, dtype=jnp.int32)
        discounts = self.gamma ** jnp.arange(self.window, dtype=jnp.float32)
        Rn = jnp.sum(jnp.where(alive, discounts[:, None] * reward, 0.0), axis=0)
        In = jnp.where(jnp.any(terminated & alive, axis=0), 0.0, self.gamma ** taken.astype(jnp.float32))
        return jnp.take_along_axis(at, taken[None] - 1, axis=0)[0], Rn, In

    def _sequences(self, rows: PackedRows, index: Int[Array, " batch"], weights: Float[Array, " batch"]) -> Trajectory:
        steps = rows.take(self._rows_of(index), lambda row: row._replace(carry=()))
        W = jnp.broadcast_to(weights, steps.reward.shape)
        return Trajectory(
            S=steps.observation,
            A=steps.action,
            logP=jnp.zeros_like(steps.reward) if steps.log_prob is None else steps.log_prob,
            R=steps.reward,
            terminated=steps.terminated,
            truncated=steps.truncated,
            S_next=steps.next_observation,
            carry=rows.take(index, lambda row: row.carry),
            W=W if steps.weight is None else W * _with_mean_one(steps.weight, steps.weight[self.burn_in :]),
            gamma=self.gamma,
            burn_in=self.burn_in,
        )


def _with_mean_one(weight: Float[Array, "*rows"], learned: Float[Array, "*some"]) -> Float[Array, "*rows"]:
    """Weights scaled so that those of what is learned from have mean 1, unless all are 0."""
    return weight / jnp.maximum(jnp.mean(learned), jnp.finfo(jnp.float32).tiny)


SMALLEST_PRIORITY = 1e-6
"""Added to TD errors, so that every transition can be drawn."""

REDRAWS = 4
"""How often a uniform draw is repeated that hit a step which weighs 0."""
