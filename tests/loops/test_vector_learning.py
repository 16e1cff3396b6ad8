"""The pure agents learn on Gymnasium's own environments."""

import gymnasium
import jax
import pytest

from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.loops.device_off_policy import OffPolicyConfig
from triax.loops.vector_evaluation import evaluate_agent
from triax.loops.vector_off_policy import VectorOffPolicy


@pytest.mark.slow
def test_dqn_balances_gymnasiums_cart_pole_within_50000_steps():
    env, many = gymnasium.make("CartPole-v1"), gymnasium.make_vec("CartPole-v1", 10)
    config = QLearningConfig(hidden=(128, 128), learning_rate=5e-4, n_step=3, epsilon_updates=5_000)
    agent = QLearningAgent(env, config)
    loop = VectorOffPolicy(env, agent, OffPolicyConfig(capacity=50_000))
    loop.init(jax.random.PRNGKey(0))

    def mean_return(num_episodes, seed):
        state, key = loop.state.learner.agent, jax.random.PRNGKey(seed)
        return evaluate_agent(agent, state, many, num_episodes=num_episodes, key=key).returns.mean()

    loop.run(50_000, hooks=[lambda p: p.step % 2_500 == 0 and mean_return(20, p.step) >= 490])
    assert mean_return(100, 0) >= 475
