"""What agents reach on gymnax within so many steps of the environment: the median of three seeds, without exploring."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reaching import NUM_SEEDS, reach
from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.agents.sac import SACAgent, SACConfig
from triax.agents.td3 import TD3Agent, TD3Config
from triax.envs import EnvWrapper, make
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig
from triax.loops.device_on_policy import DeviceOnPolicy, OnPolicyConfig
from triax.networks import (
    LSTM,
    Dense,
    DistributionSampler,
    Normalizer,
    PPOAdapter,
    Sequential,
    make_mlp_actor_critic,
)
from triax.wrappers import RewardScalingWrapper

pytestmark = pytest.mark.slow


class PositionsOnly(EnvWrapper):
    """CartPole without velocities: only memory can tell which way the pole falls."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    observation_size = 2

    def reset(self, rng):
        return self._show(self.env.reset(rng))

    def step(self, state, action):
        return self._show(self.env.step(state.inner, action))

    def _show(self, state):
        positions = np.array([0, 2])
        return state.replace(obs=state.obs[positions], final_obs=state.final_obs[positions], inner=state)


CART_POLE, PENDULUM = make("gymnax:CartPole-v1"), make("gymnax:Pendulum-v1")
MASKED_CART_POLE = PositionsOnly(CART_POLE)
MEMORY_CHAIN = make("gymnax:MemoryChain-bsuite", params={"memory_length": 10})
"""A bit is shown at first and asked for ten steps later, the only reward of the episode: 1 if right, -1 if wrong."""


def on_policy(env, network, config, **how):
    return DeviceOnPolicy(env, PPOAgent(network, config), OnPolicyConfig(**how), num_seeds=NUM_SEEDS)


def off_policy(env, agent, **how):
    return DeviceOffPolicy(env, agent, OffPolicyConfig(capacity=50_000, **how), num_seeds=NUM_SEEDS)


# ---------------------------------------------------------------------- without memory


def perceptrons(env):
    space, options = env.action_space, {"activation": "tanh", "normalize_obs": False, "entropy_weight": 0.0}
    return lambda rngs: make_mlp_actor_critic(env.observation_size, space, (64, 64), (64, 64), rngs, **options)


BALANCING = PPOAgentConfig(
    gae_lambda=0.8, discounting_factor=0.98, learning_rate=1e-3, n_epochs=20, n_minibatches=1, gradient_clipping=0.5
)
SWINGING = PPOAgentConfig(
    discounting_factor=0.95, learning_rate=1e-3, n_epochs=10, n_minibatches=8, gradient_clipping=0.5
)


def test_ppo_balances_the_pole_within_100k_steps():
    loop = on_policy(CART_POLE, perceptrons(CART_POLE), BALANCING, num_envs=8, rollout_length=32)
    reached = reach(loop, CART_POLE, target=490, steps=100_000, every=10_240, limit=500)
    assert reached.median >= 475, reached


def test_ppo_swings_the_pendulum_up_within_500k_steps():
    env = RewardScalingWrapper(PENDULUM, 0.1)
    loop = on_policy(env, perceptrons(env), SWINGING, num_envs=16, rollout_length=128)
    reached = reach(loop, PENDULUM, target=-180, steps=500_000, every=40_960, limit=200)
    assert reached.median >= -200, reached


def test_dqn_balances_the_pole_within_50k_steps():
    agent = QLearningAgent(CART_POLE, QLearningConfig(n_step=3, epsilon_updates=5_000))
    reached = reach(off_policy(CART_POLE, agent), CART_POLE, target=490, steps=50_000, every=3_000, limit=500)
    assert reached.median >= 475, reached


SMALL = {"hidden": (64, 64), "batch_size": 128, "learning_rate": 1e-3, "actor_learning_rate": 1e-3}


@pytest.mark.parametrize(
    "agent",
    [SACAgent(PENDULUM, SACConfig(**SMALL)), TD3Agent(PENDULUM, TD3Config(**SMALL))],
    ids=lambda agent: type(agent).__name__,
)
def test_swings_the_pendulum_up_within_100k_steps(agent):
    reached = reach(off_policy(PENDULUM, agent), PENDULUM, target=-180, steps=100_000, every=3_000, limit=200)
    assert reached.median >= -200, reached


# ---------------------------------------------------------------------- with memory, and the same without


def layer(width, rngs, memory, activation):
    return LSTM(width, width, rngs) if memory else Dense(width, width, rngs, activation)


def actor_and_critic(env, memory, width=32):
    """Each with a layer of its own that remembers, or one that does not."""

    def network(rngs):
        sampler = DistributionSampler(env.action_space, rngs)

        def body():
            first = Dense(env.observation_size, width, rngs, jax.nn.tanh)
            return [first, layer(width, rngs, memory, jax.nn.tanh)]

        undecided = jax.nn.initializers.variance_scaling(1e-4, "fan_in", "uniform")
        actor = [*body(), Dense(width, sampler.num_params, rngs, kernel_init=undecided), sampler]
        critic = [*body(), Dense(width, 1, rngs)]
        return Sequential([Normalizer(env.observation_size), PPOAdapter(Sequential(actor), Sequential(critic))])

    return network


def action_values(env, memory, scale, width=32):
    def network(rngs):
        first = Dense(env.observation_size, width, rngs, jax.nn.relu)
        last = Dense(width, int(env.action_space.n), rngs)
        return Sequential([lambda x: x * jnp.asarray(scale), first, layer(width, rngs, memory, jax.nn.relu), last])

    return network


def q_learning(env, memory, scale, *, sequence_length, burn_in=0, **options):
    """R2D2; or, without memory, as many transitions in each update as there were steps to learn from."""
    learned = sequence_length - burn_in
    sizes = {"batch_size": 32 if memory else 32 * learned, "sequence_length": sequence_length, "burn_in": burn_in}
    config = QLearningConfig(rule="double", alpha=0.6, **sizes, **options)
    return QLearningAgent(env, config, network=action_values(env, memory, scale))


@pytest.mark.parametrize("memory", [True, False])
def test_only_memory_lets_ppo_balance_a_pole_whose_velocity_is_hidden(memory):
    env = MASKED_CART_POLE
    loop = on_policy(env, actor_and_critic(env, memory), BALANCING, num_envs=8, rollout_length=32)
    reached = reach(loop, env, target=450, steps=100_000, every=10_240, limit=500)
    assert reached.median >= 400 if memory else reached.median <= 100, reached


@pytest.mark.parametrize("memory", [True, False])
def test_only_memory_lets_r2d2_balance_a_pole_whose_velocity_is_hidden(memory):
    env = MASKED_CART_POLE
    lasting = {"sequence_length": 25, "burn_in": 5, "tau": 0.01, "epsilon_updates": 3_000, "epsilon_final": 0.02}
    agent = q_learning(env, memory, (2.0, 10.0), **lasting)
    loop = off_policy(RewardScalingWrapper(env, 0.1), agent, num_envs=8, updates_per_iteration=2)
    reached = reach(loop, env, target=430, steps=120_000, every=8_000, limit=500)
    assert reached.median >= 400 if memory else reached.median <= 100, reached


RECALLING = PPOAgentConfig(learning_rate=3e-3, n_epochs=4, n_minibatches=1, gradient_clipping=0.5)


@pytest.mark.parametrize("memory", [True, False])
def test_only_memory_lets_ppo_recall_a_bit_after_ten_steps(memory):
    loop = on_policy(MEMORY_CHAIN, actor_and_critic(MEMORY_CHAIN, memory), RECALLING, num_envs=32, rollout_length=33)
    reached = reach(loop, MEMORY_CHAIN, target=0.95, steps=100_000, every=10_560, limit=11)
    assert reached.median >= 0.9 if memory else abs(reached.median) <= 0.4, reached


@pytest.mark.parametrize("memory", [True, False])
def test_only_memory_lets_r2d2_recall_a_bit_after_ten_steps(memory):
    options = {"sequence_length": 11, "learning_rate": 3e-3, "tau": 0.02, "epsilon_updates": 2_000}
    loop = off_policy(MEMORY_CHAIN, q_learning(MEMORY_CHAIN, memory, 1.0, **options), num_envs=8)
    reached = reach(loop, MEMORY_CHAIN, target=0.95, steps=40_000, every=8_000, limit=11)
    assert reached.median >= 0.9 if memory else abs(reached.median) <= 0.4, reached
