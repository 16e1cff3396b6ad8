"""SAC, TD3 and DDPG learn, from whatever replay gives, and with memory what needs memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from continuous_tasks import Aim, Echo, recurrent_actor, recurrent_critic, recurrent_gaussian
from corridor import Corridor
from jax_envs import Pendulum
from triax.agents.sac import SACAgent, SACConfig
from triax.agents.td3 import TD3Agent, TD3Config
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig

KEY = jax.random.PRNGKey(0)
RATES = ("learning_rate", "actor_learning_rate")
SMALL = {"hidden": (16,), "batch_size": 16, "gamma": 0.9, "tau": 0.05}
WARM = {"temperature": 0.1, "temperature_learning_rate": 1e-2}

pytestmark = pytest.mark.slow


def sac(env, rate, options, **networks):
    return SACAgent(env, SACConfig(**SMALL | dict.fromkeys(RATES, rate) | WARM | options), **networks)


def td3(env, rate, options, **networks):
    return TD3Agent(env, TD3Config(**SMALL | dict.fromkeys(RATES, rate) | options), **networks)


def ddpg(env, rate, options):
    return TD3Agent(env, TD3Config.ddpg(**SMALL | dict.fromkeys(RATES, rate) | options))


@pytest.mark.parametrize(
    ("make", "options"),
    [(sac, {"alpha": 0.6, "max_grad_norm": 10.0}), (td3, {"alpha": 0.6}), (ddpg, {})],
)
def test_finds_the_best_action_for_each_observation(make, options):
    agent = make(Aim(), 1e-2, options)
    loop = DeviceOffPolicy(Aim(), agent, OffPolicyConfig(num_envs=4, capacity=2000, warm_up=200))
    state, metrics = loop.run(loop.init(KEY), 1000)
    assert metrics["skipped"] == 0
    obs = jnp.linspace(-0.9, 0.9, 7)[:, None]
    greedy = agent.act(state.agent, obs, agent.initial_carry(state.agent, 7, KEY), KEY, explore=False)[0]
    np.testing.assert_allclose(greedy, 1 + obs, atol=0.25)


def test_goes_the_short_way_with_discrete_actions_and_returns_of_several_steps():
    agent = sac(Corridor(), 5e-3, {"temperature": 0.05, "target_entropy": 0.1, "n_step": 3})
    loop = DeviceOffPolicy(Corridor(), agent, OffPolicyConfig(num_envs=2, capacity=2000, warm_up=200))
    state, _ = loop.run(loop.init(KEY), 800)
    assert list(agent.act(state.agent, jnp.eye(5)[:4], (), KEY, explore=False)[0]) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("make", "actor", "options"),
    [
        (sac, recurrent_gaussian, {"target_entropy": -2.0}),
        (td3, recurrent_actor, {"target_noise": 0.1}),
        (td3, None, {}),
    ],
    ids=["sac", "td3", "no memory"],
)
def test_only_memory_solves_a_task_that_needs_it(make, actor, options):
    networks = {} if actor is None else {"actor": actor(2, 1), "critic": recurrent_critic(3)}
    sequences = {"sequence_length": 6, "burn_in": 2, "alpha": None if actor is None else 0.6}
    agent = make(Echo(), 1e-2, options | sequences, **networks)
    loop = DeviceOffPolicy(Echo(), agent, OffPolicyConfig(num_envs=4, capacity=2000, warm_up=200))
    state, metrics = loop.init(KEY), {}
    for _ in range(6):
        state, metrics = loop.run(state, 100)
    assert metrics["return"] < -0.8 if actor is None else metrics["return"] > -0.25


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent",
    [
        SACAgent(Pendulum(), SACConfig(hidden=(64, 64), batch_size=128, **dict.fromkeys(RATES, 1e-3))),
        TD3Agent(Pendulum(), TD3Config(hidden=(64, 64), batch_size=128, **dict.fromkeys(RATES, 1e-3))),
    ],
    ids=lambda agent: type(agent).__name__,
)
def test_swings_the_pendulum_up(agent):
    """After a tenth of the 100k steps that the issue allows; the median of three seeds."""
    env = Pendulum()
    loop = DeviceOffPolicy(env, agent, num_seeds=3)
    state, _ = loop.run(loop.init(jax.random.split(KEY, 3)), 9_000)
    assert np.median(greedy_returns(env, agent, state.agent)) >= -200


def greedy_returns(env, agent, states, episodes=20, limit=200):
    """Mean greedy returns, one for each of the states side by side."""

    def of(state, key):
        envs = jax.vmap(env.reset)(jax.random.split(key, episodes))

        def step(now, _):
            envs, carry = now
            action, carry, _ = agent.act(state, envs.obs, carry, key, explore=False)
            envs = jax.vmap(env.step)(envs, action)
            return (envs, carry), envs.reward

        rewards = jax.lax.scan(step, (envs, agent.initial_carry(state, episodes, key)), length=limit)[1]
        return rewards.sum(0).mean()

    return np.asarray(jax.jit(jax.vmap(of, in_axes=(0, None)))(states, KEY))
