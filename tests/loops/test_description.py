"""What loops print."""

import gymnasium
import jax
import jax.numpy as jnp
from flax import nnx
from gymnasium.spaces import Box

from triax.agents import PPOAgent, QLearningAgent, QLearningConfig
from triax.envs import State
from triax.loops import (
    DeviceOffPolicy,
    DeviceOnPolicy,
    OffPolicyConfig,
    OnPolicyConfig,
    VectorOffPolicy,
    VectorOnPolicy,
)
from triax.networks import make_mlp_actor_critic


class Still:
    """Nothing happens."""

    observation_space, action_space = Box(-1.0, 1.0, (1,)), gymnasium.spaces.Discrete(2)

    def reset(self, rng):
        return State.first(jnp.zeros(1))

    def step(self, state, action):
        return state.next(state.obs, 0.0, False)


def ppo():
    return PPOAgent(make_mlp_actor_critic(1, Still.action_space, [4], [4], nnx.Rngs(0)))


def dqn(env):
    return QLearningAgent(env, QLearningConfig(hidden=(4,), batch_size=8))


def test_a_device_loop_tells_environments_seeds_agent_and_config():
    agent = ppo()
    printed = str(DeviceOnPolicy(Still(), agent, OnPolicyConfig(num_envs=4), num_seeds=3))
    assert printed.startswith("DeviceOnPolicy(4 environments Still, 3 seeds)\n  agent: PPOAgent(")
    assert str(agent).splitlines()[1].strip() in printed
    assert printed.endswith("  config: OnPolicyConfig(num_envs=4)")
    printed = str(DeviceOffPolicy(Still(), dqn(Still()), OffPolicyConfig(num_envs=1, warm_up=20)))
    assert printed.startswith("DeviceOffPolicy(1 environment Still)\n  agent: QLearningAgent(")


def test_a_vector_loop_tells_how_far_it_came():
    env = gymnasium.make("CartPole-v1")
    loop = VectorOffPolicy(env, dqn(env), OffPolicyConfig(warm_up=50))
    assert str(loop).startswith("VectorOffPolicy(1 environment, not begun)\n  agent: QLearningAgent(")
    loop.init(jax.random.key(0))
    loop.run(total_steps=2)
    assert str(loop).startswith("VectorOffPolicy(1 environment, 2 steps taken)")
    network = make_mlp_actor_critic(4, env.action_space, [4], [4], nnx.Rngs(0))
    assert str(VectorOnPolicy(env, PPOAgent(network))).startswith("VectorOnPolicy(1 environment, not begun)")
