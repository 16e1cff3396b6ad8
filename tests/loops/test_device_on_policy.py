"""Rollouts and the on-policy loop on the device: against a slow loop over single environments, and compiled once."""

import functools

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from compilations import counted_compilations
from jax_envs import CartPole
from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.envs import AutoReset, State
from triax.loops.device_on_policy import DeviceOnPolicy, OnPolicyConfig
from triax.loops.rollouts import IterationKeys, begin, rollout
from triax.networks import LSTM, Dense, DistributionSampler, Normalizer, PPOAdapter, Sequential

ENVS, STEPS = 3, 12
KEY = jax.random.PRNGKey(0)


class Chance:
    """Noise for observations; an episode ends by chance, or by its limit; the reward is the action."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, rng):
        first, later = jax.random.split(rng)
        return State.first(jax.random.normal(first, (2,)), {"rng": later, "steps": 0}, metrics={"steps": 0})

    def step(self, state, action):
        rng, now = jax.random.split(state.inner["rng"])
        obs, steps = jax.random.normal(now, (2,)), state.inner["steps"] + 1
        inner = {"rng": rng, "steps": steps}
        return state.next(obs, action * 1.0, obs[0] > 1.2, inner, truncated=steps >= 4, metrics={"steps": steps})


def network(rngs):
    actor = Sequential([Dense(4, 3, rngs), DistributionSampler(Chance.action_space, rngs)])
    return Sequential([Normalizer(2), LSTM(2, 4, rngs), PPOAdapter(actor, Dense(4, 1, rngs))])


@functools.lru_cache
def small_loop(**options):
    agent = PPOAgent(network, PPOAgentConfig(n_epochs=2, n_minibatches=3, learning_rate=1e-2))
    return DeviceOnPolicy(Chance(), agent, OnPolicyConfig(ENVS, STEPS), **options)


def test_a_rollout_is_what_single_environments_and_a_memory_of_one_do_step_by_step():
    agent, env = small_loop().program.agent, AutoReset(Chance())
    state, keys = agent.init(KEY), IterationKeys.of(KEY, 3)
    acting = jax.jit(lambda: begin(agent, env, state, KEY, ENVS))()
    after, told = jax.jit(lambda a: rollout(agent, env, state, a, keys, STEPS))(acting)
    act, reset_carry = jax.jit(agent.act), jax.jit(agent.reset_carry)
    carry, starts, lengths = acting.carry, np.ones(ENVS, bool), np.zeros(ENVS, int)
    returns, ended = np.zeros(ENVS), []
    for t in range(STEPS):
        carry = reset_carry(state, carry, jnp.asarray(starts), keys.carry(t))
        action, carry, _ = act(state, told.observation[t], carry, keys.act(t))
        np.testing.assert_array_equal(told.action[t], action)
        np.testing.assert_array_equal(told.reward[t], action)
        lengths += 1
        returns += np.asarray(action)
        np.testing.assert_array_equal(told.metrics["steps"][t], lengths)
        np.testing.assert_array_equal(told.terminated[t], told.next_observation[t, :, 0] > 1.2)
        np.testing.assert_array_equal(told.truncated[t], (lengths == 4) & ~np.asarray(told.terminated[t]))
        starts = np.asarray(told.terminated[t] | told.truncated[t])
        following = told.observation[t + 1] if t + 1 < STEPS else after.envs.obs
        np.testing.assert_array_equal((following == told.next_observation[t]).all(-1), ~starts)
        ended += [(returns[b], lengths[b]) for b in np.flatnonzero(starts)]
        lengths[starts], returns[starts] = 0, 0
    np.testing.assert_array_equal(after.starts, starts)
    for expected, found in zip(jax.tree.leaves(carry), jax.tree.leaves(told.last_carry), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    report, _ = after.episodes.report()
    np.testing.assert_allclose(report["return"], np.mean([r for r, _ in ended]), rtol=1e-6)
    np.testing.assert_allclose(report["length"], np.mean([n for _, n in ended]), rtol=1e-6)
    assert report["episodes"] == len(ended)


def assert_same(expected, found, atol=0.0):
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=atol)


@pytest.mark.slow
def test_iterations_of_one_call_are_those_of_several():
    loop = small_loop(most=4)
    once, metrics = loop.run(loop.init(KEY), 6)
    state, parts = loop.init(KEY), []
    for n in (1, 2, 3):
        state, part = loop.run(state, n)
        parts.append(part)
    assert_same(once, state)
    for name, rows in metrics.items():
        assert rows.shape == (6,)
        np.testing.assert_array_equal(rows, np.concatenate([part[name] for part in parts]))
    assert state.iteration == 6
    assert loop.run(state, 0)[1] == {}


def test_compiles_once_for_any_number_of_iterations_and_for_equal_agents():
    def loop_of(seed):
        given = network(nnx.Rngs(seed))
        agent = PPOAgent(given, PPOAgentConfig(n_epochs=1, n_minibatches=1))
        return DeviceOnPolicy(env, agent, OnPolicyConfig(2, 5))

    env = Chance()
    first, second = loop_of(0), loop_of(1)
    state, _ = first.run(first.init(KEY), 1)
    with counted_compilations() as count:
        before = state
        state, _ = first.run(state, 7)
        other, _ = second.run(second.init(jax.random.PRNGKey(1)), 2)
    assert count.compilations == 0
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    given = jax.tree.leaves(PPOAgent(network(nnx.Rngs(1))).init(KEY).networks.params)
    trained = jax.tree.leaves(other.agent.networks.params)
    assert max(np.abs(a - b).max() for a, b in zip(given, trained, strict=True)) < 0.01  # it began with its own weights


@pytest.mark.slow
def test_seeds_side_by_side_do_what_each_does_alone():
    together, alone = small_loop(num_seeds=2), small_loop()
    keys = jax.random.split(KEY, 2)
    state, metrics = together.run(together.init(keys), 3)
    assert metrics["approx_kl"].shape == (3, 2)
    for seed in range(2):
        expected, _ = alone.run(alone.init(keys[seed]), 3)
        assert_same(expected.agent, jax.tree.map(lambda leaf, seed=seed: leaf[seed], state.agent), atol=2e-5)


def test_measures_what_it_is_told_to():
    def largest(agent_state, rollout):
        return {"largest": jnp.max(rollout.metrics["steps"])}

    agent = small_loop().program.agent
    loop = DeviceOnPolicy(Chance(), agent, OnPolicyConfig(ENVS, STEPS), measure=largest)
    _, metrics = loop.run(loop.init(KEY), 2)
    assert metrics["largest"].max() <= 4
    assert metrics["largest"].min() > 1


def test_the_state_of_a_given_agent_begins_the_run():
    loop = small_loop()
    agent_state = loop.program.agent.init(jax.random.PRNGKey(9))
    assert_same(agent_state, loop.init(KEY, agent_state).agent)


def test_an_environment_that_cannot_be_hashed_is_refused_with_the_reason():
    class Compared(Chance):
        def __eq__(self, other):
            return True

    with pytest.raises(TypeError, match="must be hashable"):
        DeviceOnPolicy(Compared(), small_loop().program.agent)


@pytest.mark.parametrize("field", ["num_envs", "rollout_length"])
def test_counts_are_refused_by_name(field):
    with pytest.raises(ValueError, match=f"OnPolicyConfig: {field} must be at least 1"):
        OnPolicyConfig(**{field: 0})


def test_ppo_learns_to_balance_for_a_while_within_seconds():
    """Random play falls after 22 steps."""

    def small(rngs):
        actor = Sequential(
            [Dense(4, 32, rngs, jnp.tanh), Dense(32, 2, rngs), DistributionSampler(env.action_space, rngs)]
        )
        return PPOAdapter(actor, Sequential([Dense(4, 32, rngs, jnp.tanh), Dense(32, 1, rngs)]))

    env = CartPole(limit=200)
    config = PPOAgentConfig(n_epochs=8, n_minibatches=4, learning_rate=3e-3, gae_lambda=0.9, gradient_clipping=0.5)
    loop = DeviceOnPolicy(env, PPOAgent(small, config), OnPolicyConfig(16, 32))
    _, metrics = loop.run(loop.init(jax.random.PRNGKey(4)), 60)
    assert np.nanmean(metrics["return"][-10:]) > 150


def test_keys_of_any_implementation_decide_all_that_is_drawn():
    loop = small_loop()

    def weights(seed):
        state, _ = loop.run(loop.init(jax.random.key(seed, impl="rbg")), 2)
        return jax.tree.leaves(state.agent.networks.params)

    first, again, other = weights(0), weights(0), weights(1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
