"""Off-policy learning in Gymnasium environments: the agents and the replay of the device loop, a call a step."""

import functools
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
from gymnasium.vector import VectorEnv
from jaxtyping import Array, PyTree

from triax.agents.off_policy import OffPolicyAgent
from triax.core.keys import Key, fold_name
from triax.core.sealed import Sealed
from triax.core.trees import copy_arrays
from triax.loops.description import describe_vector_loop
from triax.loops.device_replay import Experience
from triax.loops.episodes import Episodes
from triax.loops.gymnasium import Hook, Progressed
from triax.loops.host_envs import HostEnvs, Outcome
from triax.loops.off_policy_core import OffPolicyConfig, OffPolicyCore, OffPolicyState, StepKeys
from triax.loops.whole_steps import WholeSteps


class VectorOffPolicyState(NamedTuple):
    """Everything that changes but the environments: a pytree to keep and to restore."""

    learner: OffPolicyState
    """On the device."""
    steps: int
    """Steps of all environments."""
    taken: int
    """Steps that environments took, each counted: what budgets and hooks count."""
    episodes: int
    """Episodes that have ended."""


class Acted(NamedTuple):
    """What was decided, on the device, for the call that stores what it led to."""

    observation: PyTree
    action: PyTree
    carry: PyTree
    """The memory after it."""


class VectorOffPolicy(Sealed):
    """Runs an off-policy agent in a Gymnasium vector environment, or in one environment.

    A step makes one compiled call, which stores, learns when that is due, and decides the next action; there is one
    program with updates and one without, and each compiles once. With the same experience and key the state is that of
    :class:`triax.loops.device_off_policy.DeviceOffPolicy`.

    ``state`` is whole after an interrupt and can be saved. A Gymnasium environment cannot: :meth:`restore` resets it,
    so that a resumed run goes on with new episodes, and is no continuation number for number.

    Args:
        env: any autoreset mode will do.
        agent: an ``OffPolicyAgent`` for the spaces of one environment.
        config: how experience is gathered; its ``num_envs`` is that of ``env``, also by default.

    Raises:
        ValueError: ``config.num_envs`` differs, the warm-up gives no window to learn from, or replay cannot hold it.
        TypeError: ``env`` is no Gymnasium environment, or its spaces are not supported.
    """

    made_of = frozenset({"agent", "config"})

    def __init__(
        self, env: gymnasium.Env | VectorEnv, agent: OffPolicyAgent, config: OffPolicyConfig | None = None
    ) -> None:
        self._envs = HostEnvs(env, who="VectorOffPolicy")
        self.config = config = config or OffPolicyConfig(num_envs=self._envs.num_envs)
        if config.num_envs != self._envs.num_envs:
            raise ValueError(
                f"VectorOffPolicy: config.num_envs must be that of env, {self._envs.num_envs}; got {config.num_envs}."
            )
        self.agent = agent
        self._core = OffPolicyCore.checked("VectorOffPolicy", agent, config)
        self._compiled = _compile(self._core)
        self._state: VectorOffPolicyState | None = None
        self._acted: Acted

    def __repr__(self) -> str:
        return describe_vector_loop(self, None if self._state is None else self._state.taken)

    # ------------------------------------------------------------------ the shell

    @property
    def state(self) -> VectorOffPolicyState:
        """Everything that changes but the environments. The next step uses its arrays up: save it, or copy it."""
        if self._state is None:
            raise RuntimeError("VectorOffPolicy: there is no state yet. Call init(key) or restore(state) first.")
        return self._state

    def init(self, key: Key) -> None:
        """Begin anew: agent, empty replay, and environments seeded by ``key`` too."""
        observation = self._envs.reset(fold_name(key, "envs"))
        learner, acted = self._compiled.begin(key, observation, self._envs.weighted)
        self._state, self._acted = VectorOffPolicyState(learner, 0, 0, 0), acted

    def restore(self, state: VectorOffPolicyState) -> None:
        """Go on from a copy of ``state`` in new episodes; those under way count as truncated where they were."""
        observation = self._envs.reset(fold_name(state.learner.key, "envs"))
        learner, acted = self._compiled.resume(copy_arrays(state.learner), observation)
        self._state, self._acted = VectorOffPolicyState(learner, *map(int, state[1:])), acted

    def run(self, total_steps: int, *, hooks: Sequence[Hook] = ()) -> int:
        """Step until ``state.taken`` is at least ``total_steps``, or a hook stops it; ``state.taken``.

        Hooks are called in order after each step of all environments; they are told the metrics of the updates that it
        led to, on the device: means, if there are several.
        """
        with WholeSteps() as whole:
            while self.state.taken < total_steps:
                whole.begin()
                progressed = self._step()
                whole.end()
                if True in [hook(progressed) for hook in hooks]:
                    break
        return self.state.taken

    def report(self) -> dict[str, Array]:
        """``episodes`` that ended since the last report, and their mean ``return`` and ``length``, NaN without any."""
        learner = self.state.learner
        report, episodes = self._compiled.report(learner.episodes)
        self._state = self.state._replace(learner=learner._replace(episodes=episodes))
        return report

    def _step(self) -> Progressed:
        """One step of all environments, and the updates that are due."""
        learner, steps, taken, episodes = self.state
        observation, outcome = self._envs.step(jax.device_get(self._acted.action))
        steps, taken, episodes = steps + 1, taken + outcome.taken, episodes + outcome.ended
        follow = self._compiled.learn if self._is_due(steps) else self._compiled.store
        learner, self._acted, metrics = follow(learner, self._acted, outcome, observation)
        self._state = VectorOffPolicyState(learner, steps, taken, episodes)
        return Progressed(taken, outcome.ended > 0, metrics, episodes)

    def _is_due(self, steps: int) -> bool:
        """Whether updates follow this step, counted from 1: as many times as in the device loop."""
        after = steps - self.config.warm_up_steps
        return after > 0 and after % self.config.steps_per_iteration == 0


# ------------------------------------------------------------------ pure


class _Compiled(NamedTuple):
    begin: Any
    resume: Any
    store: Any
    learn: Any
    report: Any


@functools.lru_cache(maxsize=32)
def _compile(core: OffPolicyCore) -> _Compiled:
    """The programs of a loop; equal loops share them."""

    def begin(key: Key, observation: PyTree, weighted: bool) -> tuple[OffPolicyState, Acted]:
        state = core.begin(key, observation, weighted=weighted)
        return state, act(state, observation)

    def resume(state: OffPolicyState, observation: PyTree) -> tuple[OffPolicyState, Acted]:
        """Where environments begin new episodes."""
        stored = core.replay.cut(state.stored, state.cursor)
        carry = core.agent.initial_carry(state.agent, core.config.num_envs, fold_name(state.key, "carry"))
        state = state._replace(stored=stored, carry=carry, episodes=state.episodes.dropped())
        return state, act(state, observation)

    def act(state: OffPolicyState, observation: PyTree) -> Acted:
        action, carry, _ = core.agent.act(state.agent, observation, state.carry, StepKeys.of(state.key).act)
        return Acted(observation, action, carry)

    def follow(
        learns: bool, state: OffPolicyState, acted: Acted, outcome: Outcome, observation: PyTree
    ) -> tuple[OffPolicyState, Acted, dict[str, Any] | None]:
        """Store what acting led to, learn or not, and act on what is there now."""
        experience = Experience(acted.observation, acted.action, **outcome._asdict(), carry=state.carry)
        state = core.store(state, experience, acted.carry, StepKeys.of(state.key))
        state, metrics = core.updates(state) if learns else (state, None)
        return state, act(state, observation), metrics

    jit = partial(jax.jit, donate_argnums=0)
    store, learn = (jit(partial(follow, learns)) for learns in (False, True))
    return _Compiled(jax.jit(begin, static_argnums=2), jit(resume), store, learn, jit(Episodes.report))
