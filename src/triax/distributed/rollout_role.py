"""A rollout worker of a distributed run, whatever process it is in."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Array, Float, PyTree, UInt

from triax.agents.off_policy import PRIORITIES, OffPolicyAgent, with_hyperparams
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.leaves import restore_tree
from triax.loops import evaluate_agent
from triax.loops.host_envs import HostEnvs, Outcome
from triax.reward_tracing import NStep, TransitionBatch


class Gathered(NamedTuple):
    """What a worker did, beside the transitions."""

    steps: int
    rows: int
    """Transitions; of returns over several steps they come some steps later."""
    returns: list[float]
    """Of the episodes that ended; undiscounted."""
    lengths: list[int]


class Rollouts:
    """Acts, folds steps into transitions, and says how surprising each is, as ``learn`` of the agent would.

    Episodes go on from one call to the next.

    Args:
        agent: an off-policy agent without memory, whose replay is prioritized.
        env: a vector environment that resets in the same step.
        seed: of environments and draws.
        epsilon: how much it explores, if the agent's exploration is an epsilon.
    """

    def __init__(self, agent: OffPolicyAgent, env: VectorEnv, seed: int, epsilon: float) -> None:
        self._agent, self._env, self._epsilon = agent, env, epsilon
        self._envs = HostEnvs(env, who="Rollouts")
        self._key = jax.random.key(seed)
        self._num_acts = 0
        needs = agent.replay
        self._tracers = [NStep(needs.window, needs.gamma) for _ in range(env.num_envs)]
        self._like = jax.eval_shape(agent.init, self._key)
        self._learned: PyTree = None
        self._acting: PyTree = None
        self._observation: PyTree = None
        self._running = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, int)

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Act with this state of the agent from now on."""
        self._learned = self._acting = restore_tree(self._like, arrays, "Rollouts")
        if "epsilon_start" in getattr(self._learned, "hyperparams", {}):
            own = {"epsilon_start": self._epsilon, "epsilon_final": self._epsilon}
            self._acting = with_hyperparams(self._learned, **own)

    def gather(self, num_steps: int) -> tuple[TransitionBatch | None, Float[np.ndarray, " n"], Gathered]:
        """``num_steps`` steps of each environment: transitions, ``None`` if there are none, and their TD errors."""
        ready: list[TransitionBatch] = []
        returns: list[float] = []
        lengths: list[int] = []
        if self._observation is None:
            self._observation = self._envs.reset(fold_name(self._key, "envs"))
        for _ in range(num_steps):
            outcome = self._step(ready)
            self._running += outcome.reward
            self._lengths += 1
            for row in np.flatnonzero(outcome.done):
                returns.append(float(self._running[row]))
                lengths.append(int(self._lengths[row]))
                self._running[row], self._lengths[row] = 0.0, 0
        gathered = Gathered(num_steps * self._envs.num_envs, len(ready), returns, lengths)
        if not ready:
            return None, np.zeros(0, np.float32), gathered
        batch = jax.tree.map(lambda *rows: np.concatenate(rows), *ready)
        limit = (num_steps + self._agent.replay.window) * self._envs.num_envs
        return batch, self._errors(batch, limit), gathered

    def evaluate(self, num_episodes: int, seed: int) -> Float[np.ndarray, " episodes"]:
        """Returns of greedy episodes. Those that were under way are left, as if truncated: others begin."""
        key = jax.random.key(seed)
        results = evaluate_agent(self._agent, self._acting, self._env, num_episodes=num_episodes, key=key)
        for tracer in self._tracers:
            tracer.reset()
        self._observation = self._envs.reset(random.fold_in(fold_name(self._key, "envs"), self._num_acts))
        self._running[:], self._lengths[:] = 0.0, 0
        return results.returns

    def _step(self, ready: list[TransitionBatch]) -> Outcome:
        """One step of all environments; transitions that it completes are added to ``ready``."""
        acted = _act(self._agent, self._acting, self._observation, self._key, np.uint32(self._num_acts))
        self._num_acts += 1
        action, observation = jax.device_get(acted), self._observation
        self._observation, outcome = self._envs.step(action)
        for row, tracer in enumerate(self._tracers):
            s, a, s_next = _rows((observation, action, outcome.next_observation), row)
            done, truncated = bool(outcome.terminated[row]), bool(outcome.truncated[row])
            # Without it a transition waits for the step after it, which tells the next action.
            s_next = None if self._agent.replay.next_actions and not truncated else s_next
            tracer.add(s, a, outcome.reward[row], done, truncated=truncated, s_next=s_next)
            while tracer:
                ready.append(tracer.pop())
        return outcome

    def _errors(self, batch: TransitionBatch, limit: int) -> Float[np.ndarray, " n"]:
        """Padded to one size, so that it compiles once for each number of steps."""
        count = batch.batch_size
        places = np.minimum(np.arange(limit), count - 1)
        padded = jax.tree.map(lambda leaf: leaf[places], batch)
        errors = np.array(_priorities(self._agent, self._learned, padded, self._key)[:count])
        return np.where(np.isfinite(errors), np.abs(errors), 1.0).astype(np.float32)


def _rows(tree: PyTree, row: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[row], tree)


@partial(jax.jit, static_argnums=0)
def _act(agent: OffPolicyAgent, state: PyTree, observation: PyTree, key: Key, number: UInt[Array, ""]) -> PyTree:
    key = random.fold_in(fold_name(key, "act"), number)
    batch_size = jnp.shape(jax.tree.leaves(observation)[0])[0]
    carry = agent.initial_carry(state, batch_size, key)
    return agent.act(state, observation, carry, key)[0]


@partial(jax.jit, static_argnums=0)
def _priorities(agent: OffPolicyAgent, state: PyTree, batch: TransitionBatch, key: Key) -> Any:
    """What ``learn`` would say. Nothing else of it is used, so the compiler leaves gradients and updates out."""
    return agent.learn(state, batch, key)[1][PRIORITIES]
