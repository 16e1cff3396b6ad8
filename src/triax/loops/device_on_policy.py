"""On-policy learning as one compiled program: rollouts and updates, several iterations in a call."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int, PyTree

from triax.agents.interface import Agent, Rollout
from triax.core.keys import Key, fold_name
from triax.core.modules import strong_copy
from triax.core.numbers import check_count
from triax.core.sealed import Sealed
from triax.core.sharding import (
    Devices,
    check_divides,
    check_placed,
    laid_out,
    mesh_of,
    place,
    same_everywhere,
    tracing_for,
)
from triax.envs import resetting
from triax.envs.adapt import declared_action_space
from triax.loops.action_checks import check_actions
from triax.loops.description import describe_device_loop
from triax.loops.rollouts import Acting, IterationKeys, begin, rollout

Measure = Callable[[PyTree, Rollout], dict[str, Any]]
"""``(agent's state, rollout) -> metrics``: what else is to be measured; hashable, and equal for equal measures."""


@dataclass(frozen=True)
class OnPolicyConfig:
    """How experience is gathered."""

    num_envs: int = 256
    """Environments that act side by side."""
    rollout_length: int = 20
    """Steps of all environments before the agent learns."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "rollout_length"):
            check_count("OnPolicyConfig", name, getattr(self, name))


class OnPolicyState(NamedTuple):
    """Everything that changes: a pytree to donate, to keep, to restore."""

    agent: PyTree
    acting: Acting
    iteration: Int[Array, ""]
    key: Key


_AXES = OnPolicyState(agent=None, acting=0, iteration=None, key=None)  # type: ignore[arg-type]
"""Of the environments, in what is split over devices."""


@dataclass(frozen=True)
class Program:
    """What a compiled loop is made of: equal programs are compiled once."""

    agent: Agent
    env: Any
    config: OnPolicyConfig
    measure: Measure | None = None
    num_seeds: int | None = None
    mesh: Mesh | None = None
    """Of the devices over which environments are split; ``None`` for one."""

    def begin(self, agent_state: PyTree, key: Key) -> OnPolicyState:
        """The state before the first iteration."""
        acting = begin(self.agent, self.env, agent_state, key, self.config.num_envs)
        actions = jax.eval_shape(self.agent.act, agent_state, acting.envs.obs, acting.carry, key)[0]
        check_actions("DeviceOnPolicy", actions, declared_action_space(self.env))
        state = OnPolicyState(agent_state, acting, jnp.zeros((), jnp.int32), fold_name(key, "run"))
        return laid_out(state, _AXES)

    def iterate(self, state: OnPolicyState) -> tuple[OnPolicyState, dict[str, Array]]:
        """A rollout and what is learned from it."""
        keys = IterationKeys.of(state.key, state.iteration)
        acting, experience = rollout(self.agent, self.env, state.agent, state.acting, keys, self.config.rollout_length)
        experience = experience.split()
        agent, metrics = self.agent.learn(state.agent, experience, keys.learn)
        report, episodes = acting.episodes.report()
        metrics = {**metrics, **report}
        if self.measure is not None:
            metrics |= self.measure(agent, experience)
        after = OnPolicyState(agent, acting._replace(episodes=episodes), state.iteration + 1, state.key)
        return laid_out(after, _AXES), same_everywhere(metrics)


@partial(jax.jit, static_argnums=0)
def _begin(program: Program, agent_state: PyTree, key: Key) -> OnPolicyState:
    begin = program.begin if program.num_seeds is None else jax.vmap(program.begin)
    return begin(agent_state, key)


@partial(jax.jit, static_argnums=(0, 3), donate_argnums=1)
def _run(
    program: Program, state: OnPolicyState, iterations: Int[Array, ""], most: int
) -> tuple[OnPolicyState, dict[str, Array]]:
    """Up to ``most`` iterations; the metrics of each, zeros beyond."""
    iterate = program.iterate if program.num_seeds is None else jax.vmap(program.iterate)
    shapes = jax.eval_shape(iterate, state)[1]
    rows = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), shapes)

    def one(i: Int[Array, ""], carry: tuple) -> tuple:
        state, metrics = iterate(carry[0])
        return state, jax.tree.map(lambda row, new: row.at[i].set(new), carry[1], metrics)

    return jax.lax.fori_loop(0, iterations, one, (state, rows))


class DeviceOnPolicy(Sealed):
    """Runs an on-policy agent with a JAX environment in one donated, compiled program.

    ``init`` raises ``ValueError`` where the environment has an action space and the agent's actions are not of it.

    It compiles once, however many iterations a call has; and not again for another loop of an equal agent, config and
    the same environment.

    Args:
        env: a JAX environment, hashable; it is wrapped in ``AutoReset`` unless it resets itself.
        agent: an :class:`triax.agents.interface.Agent` that learns from rollouts, hashable.
        config: how experience is gathered.
        measure: more metrics, of the agent's state after an iteration and its rollout.
        num_seeds: run so many seeds at once; states, keys and metrics then have an axis ``[num_seeds]``.
        most: iterations of one compiled call at most; ``run`` makes several calls for more.
        devices: over how many local devices, or over which ones, environments are split: see ``docs/many_devices.md``.

    Raises:
        ValueError: environments cannot be split evenly over the devices, or there are not so many.
    """

    made_of = frozenset({"most", "program"})

    def __init__(
        self,
        env: Any,
        agent: Agent,
        config: OnPolicyConfig | None = None,
        *,
        measure: Measure | None = None,
        num_seeds: int | None = None,
        most: int = 64,
        devices: Devices = None,
    ) -> None:
        config, mesh = config or OnPolicyConfig(), mesh_of("DeviceOnPolicy", devices)
        check_divides("DeviceOnPolicy", "num_envs", config.num_envs, mesh)
        self.program = Program(agent, resetting(env), config, measure, num_seeds, mesh)
        self.most = check_count("DeviceOnPolicy", "most", most)
        try:
            hash(self.program)
        except TypeError as error:
            raise TypeError(
                f"DeviceOnPolicy: agent and environment must be hashable, since the program is compiled for them: "
                f"{error}. A frozen dataclass is, and a class without __eq__."
            ) from error

    def __repr__(self) -> str:
        return describe_device_loop("DeviceOnPolicy", self.program)

    def init(self, key: Key, agent_state: PyTree | None = None) -> OnPolicyState:
        """The state before the first iteration; ``key`` is one key, or one for each seed.

        ``agent_state`` is that of ``agent.init`` with a key derived from ``key``, unless it is given.
        """
        if agent_state is None:
            draw = lambda k: self.program.agent.init(fold_name(k, "agent"))  # noqa: E731
            agent_state = draw(key) if self.program.num_seeds is None else jax.vmap(draw)(key)
        mesh = self.program.mesh
        given = place((strong_copy(agent_state), key), None, mesh)
        with tracing_for(mesh):
            return strong_copy(_begin(self.program, *given))

    def place(self, state: OnPolicyState) -> OnPolicyState:
        """A state on the devices of this loop, wherever it was: on others, or in a checkpoint."""
        leading = 0 if self.program.num_seeds is None else 1
        return place(state, _AXES, self.program.mesh, leading=leading)

    def run(self, state: OnPolicyState, iterations: int) -> tuple[OnPolicyState, dict[str, np.ndarray]]:
        """``(state, metrics)`` after so many iterations; the old state is used up.

        Metrics are arrays ``[iterations]``, fetched to the host: those of ``agent.learn`` and ``measure``, and
        ``episodes``, ``return`` and ``length`` of the episodes that ended in the iteration, NaN without any.
        """
        parts = []
        while iterations > 0:
            now = min(iterations, self.most)
            state, metrics = self.launch(state, now)
            parts.append({name: rows[:now] for name, rows in jax.device_get(metrics).items()})
            iterations -= now
        return state, {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}

    def launch(self, state: OnPolicyState, iterations: int) -> tuple[OnPolicyState, dict[str, Array]]:
        """One compiled call, which is not waited for; the old state is used up.

        Metrics are those of :meth:`run`, still on the device, arrays ``[most]`` with zeros beyond ``iterations``, which
        are at most ``most``.
        """
        check_placed("DeviceOnPolicy", state.key, self.program.mesh)
        with tracing_for(self.program.mesh):
            return _run(self.program, state, np.int32(iterations), self.most)
