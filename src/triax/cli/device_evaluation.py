"""How good a pure agent is without exploration in a JAX environment: all episodes in one compiled program."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents import Agent
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.env_protocol import restart
from triax.envs import adapt

LONGEST = 10_000
"""Steps after which an episode is cut off."""


class Playing(NamedTuple):
    """Episodes side by side, each played until it ends."""

    envs: PyTree
    carry: PyTree
    running: Bool[Array, " episodes"]
    returns: Float[Array, " episodes"]
    steps: Int[Array, ""]


class DeviceEvaluation:
    """Plays episodes with the greedy policy, each in an environment of its own.

    Args:
        agent: a pure agent, hashable.
        env: a JAX environment.
        num_seeds: evaluate so many agents at once, of states with an axis ``[num_seeds]``.
    """

    def __init__(self, agent: Agent, env: Any, num_episodes: int, num_seeds: int | None = None) -> None:
        self._played = agent, adapt(env), num_episodes, num_seeds is not None

    def __call__(self, state: PyTree, key: Key) -> np.ndarray:
        """The undiscounted returns ``[(num_seeds,) num_episodes]``; ``key`` is one, or one for each seed."""
        return np.asarray(_play(*self._played, state, key), float)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _play(agent: Agent, env: Any, num_episodes: int, has_seeds: bool, state: PyTree, key: Key) -> Array:
    """Compiled once for equal agents and environments."""
    one = partial(_returns, agent, env, num_episodes)
    return (jax.vmap(one) if has_seeds else one)(state, key)


def _returns(agent: Agent, env: Any, num_episodes: int, state: PyTree, key: Key) -> Float[Array, " episodes"]:
    envs = jax.vmap(partial(restart, env))(random.split(fold_name(key, "envs"), num_episodes))
    first = Playing(
        envs,
        agent.initial_carry(state, num_episodes, fold_name(key, "carry")),
        jnp.ones(num_episodes, bool),
        jnp.zeros(num_episodes, jnp.float32),
        jnp.zeros((), jnp.int32),
    )

    def goes_on(playing: Playing) -> Bool[Array, ""]:
        return jnp.any(playing.running) & (playing.steps < LONGEST)

    def step(playing: Playing) -> Playing:
        rng = random.fold_in(key, playing.steps)
        action, carry, _ = agent.act(state, playing.envs.obs, playing.carry, rng, explore=False)
        envs = jax.vmap(env.step)(playing.envs, action)
        reward = sum(jax.tree.leaves(envs.reward))
        returns = playing.returns + jnp.where(playing.running, reward, 0.0)
        running = playing.running & ~(envs.terminated | envs.truncated)
        return Playing(envs, carry, running, returns, playing.steps + 1)

    return jax.lax.while_loop(goes_on, step, first).returns
