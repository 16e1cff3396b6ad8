"""The pure agents learn on Gymnasium's own environments, whose vectors reset in the next step."""

import gymnasium
import jax
import pytest

from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.loops.device_off_policy import OffPolicyConfig
from triax.loops.device_on_policy import OnPolicyConfig
from triax.loops.vector_evaluation import evaluate_agent
from triax.loops.vector_off_policy import VectorOffPolicy
from triax.loops.vector_on_policy import VectorOnPolicy
from triax.networks import make_mlp_actor_critic


def mean_return(agent, state, num_episodes, seed):
    """Of the greedy policy."""
    env, key = gymnasium.make_vec("CartPole-v1", 10), jax.random.PRNGKey(seed)
    return evaluate_agent(agent, state, env, num_episodes=num_episodes, key=key).returns.mean()


@pytest.mark.slow
def test_dqn_balances_gymnasiums_cart_pole_within_50000_steps():
    env = gymnasium.make("CartPole-v1")
    config = QLearningConfig(hidden=(128, 128), learning_rate=5e-4, n_step=3, epsilon_updates=5_000)
    agent = QLearningAgent(env, config)
    loop = VectorOffPolicy(env, agent, OffPolicyConfig(capacity=50_000))
    loop.init(jax.random.PRNGKey(0))

    def is_good(progressed):
        step = progressed.step
        return step % 2_500 == 0 and mean_return(agent, loop.state.learner.agent, 20, step) >= 490

    loop.run(50_000, hooks=[is_good])
    assert mean_return(agent, loop.state.learner.agent, 100, 0) >= 475


@pytest.mark.slow
def test_ppo_balances_gymnasiums_cart_pole_within_100000_steps():
    env = gymnasium.make_vec("CartPole-v1", 8)

    def network(rngs):
        return make_mlp_actor_critic(4, env.single_action_space, (64, 64), (64, 64), rngs, activation="tanh")

    options = {"learning_rate": 1e-3, "n_epochs": 20, "n_minibatches": 1}
    agent = PPOAgent(network, PPOAgentConfig(gae_lambda=0.8, discounting_factor=0.98, **options))
    loop = VectorOnPolicy(env, agent, OnPolicyConfig(num_envs=8, rollout_length=32))
    loop.init(jax.random.PRNGKey(0))
    evaluated = [0]

    def is_good(progressed):
        if progressed.metrics is None or progressed.step < evaluated[-1] + 5_000:
            return False
        evaluated.append(progressed.step)
        return mean_return(agent, loop.state.learner.agent, 20, progressed.step) >= 490

    loop.run(100_000, hooks=[is_good])
    assert mean_return(agent, loop.state.learner.agent, 100, 0) >= 475
