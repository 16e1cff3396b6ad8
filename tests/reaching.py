"""Training until a policy is good enough: several seeds in one compiled program, judged without exploration."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

KEY = jax.random.PRNGKey(0)
NUM_SEEDS = 3


class Reached(NamedTuple):
    """The best policy of each seed, judged once more by episodes that did not choose it."""

    returns: np.ndarray
    """Mean greedy return of each seed."""
    steps: int
    """Of all environments of a seed together when training ended, warm-up included."""

    @property
    def median(self):
        return float(np.median(self.returns))


def reach(loop, env, *, target, steps, every, limit, episodes=128):
    """Train for ``steps``, or until the median of the seeds, each at its best so far, is ``target``.

    Policies are judged each ``every`` steps. ``loop`` is a compiled one with ``NUM_SEEDS``, ``limit`` the length of the
    longest episode of ``env``.
    """
    agent, (taken, per_iteration) = _agent(loop), _steps(loop)
    iterations = every // per_iteration
    state, best, kept = loop.init(jax.random.split(KEY, NUM_SEEDS)), np.full(NUM_SEEDS, -np.inf), None
    while taken + iterations * per_iteration <= steps and np.median(best) < target:
        state, _ = loop.run(state, iterations)
        taken += iterations * per_iteration
        returns = greedy_returns(agent, env, state.agent, jax.random.PRNGKey(taken), episodes, limit)
        kept = _where(returns > best, state.agent, state.agent if kept is None else kept)
        best = np.maximum(best, returns)
    returns = greedy_returns(agent, env, kept, jax.random.PRNGKey(1), episodes, limit)
    return Reached(np.asarray(returns), taken)


@jax.jit
def _where(seeds, new, old):
    """Copies, since a loop uses up its own state."""
    return jax.tree.map(lambda a, b: jnp.where(seeds.reshape(-1, *(1,) * (a.ndim - 1)), a, b), new, old)


def _agent(loop):
    return loop.program.agent if hasattr(loop, "program") else loop.agent


def _steps(loop):
    """Before the first iteration, and in each."""
    if hasattr(loop, "program"):
        return 0, loop.program.config.num_envs * loop.program.config.rollout_length
    config = loop.config
    return config.warm_up_steps * config.num_envs, config.steps_per_iteration * config.num_envs


@partial(jax.jit, static_argnums=(0, 1, 4, 5))
def greedy_returns(agent, env, states, key, episodes, limit):
    """Undiscounted, each the mean over first episodes; one for each of the agent's states side by side."""

    def of(state):
        def step(now, t):
            envs, carry, running = now
            action, carry, _ = agent.act(state, envs.obs, carry, jax.random.fold_in(key, t), explore=False)
            envs = jax.vmap(env.step)(envs, action)
            return (envs, carry, running & ~envs.done), jnp.where(running, envs.reward, 0.0)

        envs = jax.vmap(env.reset)(jax.random.split(key, episodes))
        first = envs, agent.initial_carry(state, episodes, key), jnp.ones(episodes, bool)
        return jax.lax.scan(step, first, jnp.arange(limit))[1].sum(0).mean()

    return jax.vmap(of)(states)
