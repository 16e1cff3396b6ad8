"""Rollouts: an agent and a batch of JAX environments, some steps on, in one scan."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.interface import Agent, Rollout
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.env_protocol import State
from triax.loops.episodes import Episodes


class IterationKeys(NamedTuple):
    """The keys of one iteration, rollout and learning: the same in every loop, so that loops agree."""

    root: Key

    @classmethod
    def of(cls, run: Key, iteration: Int[Array, ""] | int) -> "IterationKeys":
        """Those of an iteration of a run."""
        return cls(random.fold_in(run, iteration))

    def act(self, step: Int[Array, ""] | int) -> Key:
        """What acting draws with, at a step of the rollout."""
        return random.fold_in(fold_name(self.root, "act"), step)

    def carry(self, step: Int[Array, ""] | int) -> Key:
        """What fresh memories draw with, before a step of the rollout."""
        return random.fold_in(fold_name(self.root, "carry"), step)

    @property
    def learn(self) -> Key:
        """What learning draws with."""
        return fold_name(self.root, "learn")


class Acting(NamedTuple):
    """Where a batch of environments and the agent's memory of them are."""

    envs: State
    carry: PyTree
    """The memory after the last step; rows of ``starts`` are to be reset before the next one."""
    starts: Bool[Array, " batch"]
    """Where the next step begins an episode."""
    episodes: Episodes


def begin(agent: Agent, env: Any, agent_state: PyTree, key: Key, num_envs: int) -> Acting:
    """Environments and memories at the start of their first episodes; ``env`` resets itself."""
    envs = jax.vmap(env.reset)(random.split(fold_name(key, "envs"), num_envs))
    carry = agent.initial_carry(agent_state, num_envs, fold_name(key, "carry"))
    return Acting(envs, carry, jnp.ones(num_envs, bool), Episodes.begin(num_envs))


def rollout(
    agent: Agent, env: Any, agent_state: PyTree, acting: Acting, keys: IterationKeys, num_steps: int
) -> tuple[Acting, Rollout]:
    """``num_steps`` steps of all environments. ``env`` resets itself, as ``AutoReset`` does."""

    def step(acting: Acting, rngs: tuple[Key, Key]) -> tuple[Acting, tuple]:
        observation = acting.envs.obs
        carry = agent.reset_carry(agent_state, acting.carry, acting.starts, rngs[1])
        action, carry, extras = agent.act(agent_state, observation, carry, rngs[0])
        envs = jax.vmap(env.step)(acting.envs, action)
        told = (observation, action, envs.reward, envs.terminated, envs.truncated, envs.final_obs, extras)
        episodes = acting.episodes.after(total_reward(envs.reward), envs.done)
        return Acting(envs, carry, envs.done, episodes), (told, envs.metrics)

    # All keys at once: on a CPU, drawing one costs as much as drawing hundreds.
    rngs = jax.vmap(lambda t: (keys.act(t), keys.carry(t)))(jnp.arange(num_steps))
    after, (told, metrics) = jax.lax.scan(step, acting, rngs)
    memory = {"carry": acting.carry, "last_carry": after.carry, "starts": acting.starts}
    return after, Rollout(*told, **memory, metrics=metrics)


def total_reward(reward: PyTree) -> Float[Array, "*batch"]:
    """The sum of all rewards of a step."""
    return sum(jax.tree.leaves(reward), jnp.zeros((), jnp.float32))
