"""On-policy learning in Gymnasium environments: the agents of the device loop, one compiled call a step."""

import functools
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Array, Bool, Int, PyTree

from triax.agents.interface import Agent, Rollout
from triax.core.keys import Key, fold_name
from triax.core.modules import strong_copy
from triax.core.sealed import Sealed
from triax.loops.action_checks import check_actions
from triax.loops.description import describe_vector_loop
from triax.loops.device_on_policy import OnPolicyConfig, OnPolicyState
from triax.loops.episodes import Episodes
from triax.loops.gymnasium import Hook, Progressed
from triax.loops.host_envs import HostEnvs
from triax.loops.rollouts import Acting, IterationKeys
from triax.loops.whole_steps import WholeSteps


class VectorOnPolicyState(NamedTuple):
    """Everything that changes but the environments: a pytree to keep and to restore."""

    learner: OnPolicyState
    """On the device; as of the last rollout that was learned from."""
    taken: int
    """Steps that environments took until then, each counted: what budgets and hooks count."""
    episodes: int
    """Episodes that had ended."""


class Columns:
    """Arrays ``[steps, ...]`` that are filled row by row.

    New ones for each rollout: on the CPU a compiled call may go on reading the old ones while it runs.
    """

    def __init__(self, num_steps: int, row: PyTree) -> None:
        self.tree = jax.tree.map(lambda leaf: np.empty((num_steps, *leaf.shape), leaf.dtype), row)
        self._leaves = jax.tree.leaves(self.tree)

    def write(self, step: int, row: PyTree) -> None:
        """Fill a row."""
        for column, value in zip(self._leaves, jax.tree.leaves(row), strict=True):
            column[step] = value


class VectorOnPolicy(Sealed):
    """Runs an on-policy agent in a Gymnasium vector environment, or in one environment.

    ``init`` and ``restore`` raise ``ValueError`` where the agent's actions are not of the environment's action space.

    A step makes one compiled call, and each rollout one that learns; they compile once. With the same experience and
    key the state is that of :class:`triax.loops.device_on_policy.DeviceOnPolicy`.

    ``state`` is whole after an interrupt and can be saved. A Gymnasium environment cannot: :meth:`restore` resets it,
    so that a resumed run goes on with new episodes, and is no continuation number for number.

    Args:
        env: any autoreset mode will do.
        agent: an agent that learns from rollouts, for the spaces of one environment.
        config: how experience is gathered; its ``num_envs`` is that of ``env``, also by default.

    Raises:
        ValueError: ``config.num_envs`` differs.
        TypeError: ``env`` is no Gymnasium environment, or its spaces are not supported.
    """

    made_of = frozenset({"agent", "config"})

    def __init__(self, env: gymnasium.Env | VectorEnv, agent: Agent, config: OnPolicyConfig | None = None) -> None:
        self._envs = HostEnvs(env, who="VectorOnPolicy")
        self.config = config = config or OnPolicyConfig(num_envs=self._envs.num_envs)
        if config.num_envs != self._envs.num_envs:
            raise ValueError(
                f"VectorOnPolicy: config.num_envs must be that of env, {self._envs.num_envs}; got {config.num_envs}."
            )
        self.agent = agent
        self._compiled = _compile(agent, config)
        self._state: VectorOnPolicyState | None = None
        self._under_way: _UnderWay

    def __repr__(self) -> str:
        return describe_vector_loop(self, None if self._state is None else self._state.taken)

    @property
    def state(self) -> VectorOnPolicyState:
        """Everything that changes but the environments and a rollout that is under way.

        Learning uses its arrays up: save it, or copy it.
        """
        if self._state is None:
            raise RuntimeError("VectorOnPolicy: there is no state yet. Call init(key) or restore(state) first.")
        return self._state

    def init(self, key: Key, agent_state: PyTree | None = None) -> None:
        """Begin anew: environments seeded by ``key``, and an agent drawn with it, unless its state is given."""
        observation = self._envs.reset(fold_name(key, "envs"))
        if agent_state is None:
            agent_state = self._compiled.draw(key)
        learner = strong_copy(self._compiled.begin(strong_copy(agent_state), key))
        self._check_actions(learner, observation)
        self._go_on(VectorOnPolicyState(learner, 0, 0), observation, np.ones(self.config.num_envs, bool))

    def restore(self, state: VectorOnPolicyState) -> None:
        """Go on from a copy of ``state`` in new episodes."""
        key = IterationKeys.of(state.learner.key, state.learner.iteration).root
        observation = self._envs.reset(fold_name(key, "envs"))
        learner = self._compiled.resume(strong_copy(state.learner))
        self._check_actions(learner, observation)
        starts = np.ones(self.config.num_envs, bool)
        self._go_on(VectorOnPolicyState(learner, int(state.taken), int(state.episodes)), observation, starts)

    def run(self, total_steps: int, *, hooks: Sequence[Hook] = ()) -> int:
        """Step until ``state.taken`` is at least ``total_steps``, in whole rollouts, or a hook stops it; the steps.

        Hooks are called in order after each step of all environments; where it completed a rollout, they are told the
        metrics of learning, on the device, with ``episodes`` that ended and their mean ``return`` and ``length``.
        """
        with WholeSteps() as whole:
            while self.state.taken < total_steps:
                whole.begin()
                progressed = self._step()
                whole.end()
                if True in [hook(progressed) for hook in hooks]:
                    return progressed.step
        return self.state.taken

    def _check_actions(self, learner: OnPolicyState, observation: PyTree) -> None:
        acted = jax.eval_shape(self.agent.act, learner.agent, observation, learner.acting.carry, learner.key)
        check_actions("VectorOnPolicy", acted[0], self._envs.action_space)

    def _go_on(self, state: VectorOnPolicyState, observation: PyTree, starts: Bool[np.ndarray, " envs"]) -> None:
        """With the next rollout."""
        self._state = state
        self._under_way = _UnderWay(observation, state.learner.acting.carry, starts, state.taken, state.episodes)

    def _step(self) -> Progressed:
        """One step of all environments, and learning if it completes the rollout."""
        learner, now = self.state.learner, self._under_way
        action, carry, extras = self._compiled.act(
            learner.agent, now.carry, now.starts, learner.key, learner.iteration, np.int32(now.step), now.observation
        )
        action, extras = jax.device_get((action, extras))
        observation, outcome = self._envs.step(action)
        row = _Row(now.observation, action, extras, *outcome)
        columns = now.columns or Columns(self.config.rollout_length, row)
        columns.write(now.step, row)
        taken, episodes = now.taken + outcome.taken, now.episodes + outcome.ended
        after = _UnderWay(observation, carry, outcome.done, taken, episodes, now.step + 1, columns)
        if after.step < self.config.rollout_length:
            self._under_way = after
            return Progressed(taken, outcome.ended > 0, None, episodes)
        learner, metrics = self._compiled.learn(learner, columns.tree, carry, outcome.done)
        self._go_on(VectorOnPolicyState(learner, taken, episodes), observation, outcome.done)
        return Progressed(taken, outcome.ended > 0, metrics, episodes)


class _Row(NamedTuple):
    """One step of all environments, or of ``Columns``."""

    observation: PyTree
    action: PyTree
    extras: PyTree
    reward: Any
    terminated: Any
    truncated: Any
    next_observation: PyTree
    weight: Any


class _UnderWay(NamedTuple):
    """Where environments and memories are in a rollout."""

    observation: PyTree
    carry: PyTree
    starts: Bool[np.ndarray, " envs"]
    taken: int
    episodes: int
    step: int = 0
    columns: Columns | None = None


# ------------------------------------------------------------------ pure


_ON_THE_HOST: Any = ()
"""States of environments."""


class _Compiled(NamedTuple):
    draw: Any
    begin: Any
    resume: Any
    act: Any
    learn: Any


@functools.lru_cache(maxsize=32)
def _compile(agent: Agent, config: OnPolicyConfig) -> _Compiled:
    """The programs of a loop; equal loops share them."""
    num_envs = config.num_envs

    def fresh(agent_state: PyTree, key: Key, episodes: Episodes) -> Acting:
        carry = agent.initial_carry(agent_state, num_envs, fold_name(key, "carry"))
        return Acting(_ON_THE_HOST, carry, jnp.ones(num_envs, bool), episodes)

    def begin(agent_state: PyTree, key: Key) -> OnPolicyState:
        acting = fresh(agent_state, key, Episodes.begin(num_envs))
        return OnPolicyState(agent_state, acting, jnp.zeros((), jnp.int32), fold_name(key, "run"))

    def resume(state: OnPolicyState) -> OnPolicyState:
        """Whose environments begin new episodes."""
        return state._replace(acting=fresh(state.agent, state.key, state.acting.episodes.dropped()))

    def act(
        agent_state: PyTree,
        carry: PyTree,
        starts: Bool[Array, " envs"],
        key: Key,
        iteration: Int[Array, ""],
        step: Int[Array, ""],
        observation: PyTree,
    ) -> tuple:
        keys = IterationKeys.of(key, iteration)
        carry = agent.reset_carry(agent_state, carry, starts, keys.carry(step))
        action, carry, extras = agent.act(agent_state, observation, carry, keys.act(step))
        return action, carry, extras

    def learn(
        state: OnPolicyState, rows: _Row, carry: PyTree, starts: Bool[Array, " envs"]
    ) -> tuple[OnPolicyState, dict[str, Any]]:
        acting = state.acting
        experience = Rollout(**rows._asdict(), carry=acting.carry, last_carry=carry, starts=acting.starts)
        keys = IterationKeys.of(state.key, state.iteration)
        agent_state, metrics = agent.learn(state.agent, experience, keys.learn)
        report, episodes = _followed(acting.episodes, experience).report()
        acting = Acting(_ON_THE_HOST, carry, starts, episodes)
        return OnPolicyState(agent_state, acting, state.iteration + 1, state.key), {**metrics, **report}

    def draw(key: Key) -> PyTree:
        return agent.init(fold_name(key, "agent"))

    donating = partial(jax.jit, donate_argnums=0)
    return _Compiled(jax.jit(draw), jax.jit(begin), donating(resume), jax.jit(act), donating(learn))


def _followed(episodes: Episodes, rollout: Rollout) -> Episodes:
    """The statistics after a rollout."""

    def step(episodes: Episodes, row: tuple) -> tuple[Episodes, None]:
        reward, done, weight = row
        return episodes.after(reward, done, None if weight is None else weight > 0), None

    rows = rollout.reward, rollout.terminated | rollout.truncated, rollout.weight
    return jax.lax.scan(step, episodes, rows)[0]
