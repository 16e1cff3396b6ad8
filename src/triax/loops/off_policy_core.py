"""What off-policy loops share, wherever their environments are: acting, storing and learning as pure functions."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from triax.agents.off_policy import PRIORITIES, OffPolicyAgent, ReplayNeeds
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.numbers import check_count
from triax.core.sharding import laid_out, same_everywhere, with_rows_split
from triax.loops.device_replay import Cursor, DeviceReplay, Experience, Stored
from triax.loops.episodes import Episodes
from triax.reward_tracing import Trajectory, TransitionBatch


@dataclass(frozen=True)
class OffPolicyConfig:
    """How experience is gathered."""

    num_envs: int = 1
    """Environments that act side by side."""
    capacity: int = 131_072
    """Transitions that replay keeps."""
    warm_up: int = 1_000
    """Transitions gathered before the first update; rounded up to steps of all environments."""
    steps_per_iteration: int = 1
    """Steps of all environments ..."""
    updates_per_iteration: int = 1
    """... before so many updates."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "capacity", "warm_up", "steps_per_iteration", "updates_per_iteration"):
            check_count("OffPolicyConfig", name, getattr(self, name))

    @property
    def warm_up_steps(self) -> int:
        """Steps of all environments before the first update."""
        return -(-self.warm_up // self.num_envs)


class OffPolicyState(NamedTuple):
    """Everything that changes on the device: a pytree to donate, to keep, to restore."""

    agent: PyTree
    envs: PyTree
    """States of JAX environments; ``()`` where environments are on the host."""
    carry: PyTree
    """The memory that acts next."""
    stored: Stored
    cursor: Cursor
    episodes: Episodes
    key: Key


_first: Any = 0
_second: Any = 1
_none: Any = None  # the same on all devices
AXES = OffPolicyState(
    agent=_none,
    envs=_first,
    carry=_first,
    stored=Stored(rows=_second, priorities=_none),
    cursor=_none,
    episodes=_first,
    key=_none,
)
"""Of the environments, in what is split over devices."""


class StepKeys(NamedTuple):
    """The keys of one step of all environments."""

    following: Key
    """From which the next keys are drawn."""
    act: Key
    carry: Key

    @classmethod
    def of(cls, key: Key) -> "StepKeys":
        """The keys that ``OffPolicyState.key`` stands for."""
        return cls(*random.split(key, 3))


@dataclass(frozen=True)
class OffPolicyCore:
    """Pure functions of ``OffPolicyState``. The same experience gives the same state, whoever steps environments.

    Equal ones, of an equal agent and config, need to be compiled once.
    """

    agent: OffPolicyAgent
    config: OffPolicyConfig

    @classmethod
    def checked(cls, who: str, agent: OffPolicyAgent, config: OffPolicyConfig) -> "OffPolicyCore":
        """That of the loop ``who``; ``ValueError`` if the warm-up gives no window to learn from, or replay is small."""
        core = cls(agent, config)
        window = core.replay.span
        if config.warm_up_steps < window:
            raise ValueError(
                f"{who}: warm_up must give windows of {window} steps in {config.num_envs} environments,"
                f" at least {window * config.num_envs} transitions; got {config.warm_up}."
            )
        return core

    @functools.cached_property
    def replay(self) -> DeviceReplay:
        """The one that the agent needs."""
        needs, config = self.agent.replay, self.config
        return DeviceReplay(
            config.capacity,
            config.num_envs,
            needs.window,
            gamma=needs.gamma,
            sequences=needs.sequences,
            burn_in=needs.burn_in,
            alpha=needs.alpha,
            beta=needs.beta,
            next_actions=needs.next_actions,
        )

    def begin(self, key: Key, observation: PyTree, *, envs: PyTree = (), weighted: bool = False) -> OffPolicyState:
        """The state before the first step.

        ``observation`` is a batch of them, or of ``jax.ShapeDtypeStruct``; ``weighted`` says that steps will come with
        a weight.
        """
        num_envs = self.config.num_envs
        agent = self.agent.init(fold_name(key, "agent"))
        carry = self.agent.initial_carry(agent, num_envs, fold_name(key, "carry"))
        numbers, flags = jnp.zeros(num_envs, jnp.float32), jnp.zeros(num_envs, bool)
        action = jax.eval_shape(self.agent.act, agent, observation, carry, key)[0]
        weight = numbers if weighted else None
        example = Experience(observation, action, numbers, flags, flags, observation, carry=carry, weight=weight)
        stored, cursor = self.replay.init(example)
        return OffPolicyState(agent, envs, carry, stored, cursor, Episodes.begin(num_envs), fold_name(key, "run"))

    def store(self, state: OffPolicyState, experience: Experience, carry: PyTree, keys: StepKeys) -> OffPolicyState:
        """The state after a step of all environments; ``carry`` is the memory after acting."""
        done = experience.terminated | experience.truncated
        carry = self.agent.reset_carry(state.agent, carry, done, keys.carry)
        stored, cursor = self.replay.add(state.stored, state.cursor, experience)
        taken = None if experience.weight is None else experience.weight > 0
        episodes = state.episodes.after(experience.reward, done, taken)
        state = state._replace(carry=carry, stored=stored, cursor=cursor, episodes=episodes, key=keys.following)
        return laid_out(state, AXES)

    def updates(self, state: OffPolicyState) -> tuple[OffPolicyState, dict[str, Array]]:
        """The updates of one iteration, and the means of their metrics."""
        if self.config.updates_per_iteration == 1:
            return self._update(state)
        update = lambda s, _: self._update(s)  # noqa: E731
        state, metrics = jax.lax.scan(update, state, length=self.config.updates_per_iteration)
        return state, jax.tree.map(jnp.mean, metrics)

    def _update(self, state: OffPolicyState) -> tuple[OffPolicyState, dict[str, Any]]:
        """One update of the agent from replay."""
        key, rng_sample, rng_learn = random.split(state.key, 3)
        needs = self.agent.replay
        index, weights = self.replay.starts(state.stored, state.cursor, rng_sample, needs.batch_size)
        batch = _split(self.replay.windows(state.stored, index, weights), needs)
        agent, metrics = self.agent.learn(state.agent, batch, rng_learn)
        stored = state.stored
        if needs.alpha is not None:
            stored = self.replay.set_priorities(stored, index, same_everywhere(metrics[PRIORITIES]))
        metrics = {name: value for name, value in metrics.items() if name != PRIORITIES}
        return laid_out(state._replace(agent=agent, stored=stored, key=key), AXES), metrics


def _split(batch: TransitionBatch | Trajectory, needs: ReplayNeeds) -> TransitionBatch | Trajectory:
    """The batch, split over the devices that a program runs on."""
    if isinstance(batch, TransitionBatch):
        return with_rows_split(batch, needs.batch_size)
    over_time = with_rows_split(dataclasses.replace(batch, carry=()), needs.batch_size, axis=1)
    return dataclasses.replace(over_time, carry=with_rows_split(batch.carry, needs.batch_size))
