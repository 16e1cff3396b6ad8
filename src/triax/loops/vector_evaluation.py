"""How good an agent is without exploration, in Gymnasium environments."""

from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.interface import Agent
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.numbers import check_count
from triax.loops.host_envs import HostEnvs


class EpisodeResults(NamedTuple):
    """Of each episode, those of one environment after another; NumPy."""

    returns: Float[np.ndarray, " episodes"]
    """Undiscounted."""
    lengths: Int[np.ndarray, " episodes"]


def evaluate_agent(
    agent: Agent, state: PyTree, env: gymnasium.Env | VectorEnv, *, num_episodes: int, key: Key
) -> EpisodeResults:
    """Episodes with ``explore=False`` and the agent's memory; ``state`` is left as it is.

    How many each environment plays is settled before: whichever ``num_episodes`` ended first would be the short ones.
    A step makes one compiled call, which is compiled once for each agent and number of environments.

    Args:
        agent: any agent.
        state: its own, as in ``learner.agent`` of the state of a loop.
        env: one environment, or a vector environment in any autoreset mode.
        num_episodes: of all environments together.
        key: seeds the environments, and is drawn from where an agent draws without exploring.
    """
    count = check_count("evaluate_agent", "num_episodes", num_episodes)
    envs = HostEnvs(env, who="evaluate_agent")
    quotas = [len(part) for part in np.array_split(np.arange(count), envs.num_envs)]
    played: list[list[tuple[float, int]]] = [[] for _ in quotas]
    observation, starts = envs.reset(fold_name(key, "envs")), np.ones(envs.num_envs, bool)
    carry = _initial_carry(agent, state, envs.num_envs, key)
    running, lengths, step = np.zeros(envs.num_envs), np.zeros(envs.num_envs, int), 0
    while any(len(own) < quota for own, quota in zip(played, quotas, strict=True)):
        action, carry = _act_greedily(agent, state, carry, starts, key, np.int32(step), observation)
        observation, outcome = envs.step(jax.device_get(action))
        taken = np.ones_like(starts) if outcome.weight is None else outcome.weight > 0
        running, lengths, step = running + outcome.reward, lengths + taken, step + 1
        starts = outcome.done
        for row in np.flatnonzero(starts & taken):
            played[row].append((float(running[row]), int(lengths[row])))
        running[starts], lengths[starts] = 0.0, 0
    results = [result for own, quota in zip(played, quotas, strict=True) for result in own[:quota]]
    returns, steps = zip(*results, strict=True)
    return EpisodeResults(np.array(returns), np.array(steps))


@partial(jax.jit, static_argnums=(0, 2))
def _initial_carry(agent: Agent, state: PyTree, num_envs: int, key: Key) -> PyTree:
    return agent.initial_carry(state, num_envs, fold_name(key, "carry"))


@partial(jax.jit, static_argnums=0)
def _act_greedily(
    agent: Agent,
    state: PyTree,
    carry: PyTree,
    starts: Bool[Array, " envs"],
    key: Key,
    step: Int[Array, ""],
    observation: PyTree,
) -> tuple[Any, PyTree]:
    """``(action, carry)``."""
    rng_carry, rng_act = random.split(random.fold_in(key, step))
    carry = agent.reset_carry(state, carry, starts, rng_carry)
    return agent.act(state, observation, carry, rng_act, explore=False)[:2]
