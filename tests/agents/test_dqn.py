"""The DQN agent learns, explores as told, and restores its weights."""

import gymnasium
import numpy as np
import pytest

from triax.agents import DQN, DQNConfig
from triax.loops import evaluate, run_gymnasium

SMALL = {"hidden": (16,), "learning_starts": 50, "batch_size": 16, "epsilon_steps": 500}


@pytest.mark.parametrize("options", [{}, {"double": False}, {"prioritized": True, "n_step": 3}])
def test_finds_the_way_on_a_frozen_lake_that_is_not_slippery(options):
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    config = DQNConfig(**SMALL | {"epsilon_final": 0.4, "tau": 0.05, "learning_rate": 5e-3, "gamma": 0.9} | options)
    agent = DQN(env, config, total_steps=4000, seed=0)
    run_gymnasium(agent, env, 4000, seed=0)
    assert evaluate(agent.act_greedily, env, num_episodes=1, seed=0) == [1.0]


def test_exploration_falls_as_the_config_says():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, DQNConfig(**SMALL, epsilon_start=0.8, epsilon_final=0.2), seed=0)
    seen = {}
    for step in (0, 250, 500, 900):
        agent.step = step
        agent.act(np.zeros(4, np.float32))
        seen[step] = agent.pi.epsilon
    assert seen == pytest.approx({0: 0.8, 250: 0.5, 500: 0.2, 900: 0.2})


def test_greedy_actions_do_not_depend_on_exploration():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, DQNConfig(**SMALL), seed=1)
    agent.pi.epsilon = 1.0
    s = np.array([0.1, -0.2, 0.05, 0.3], np.float32)
    assert {agent.act_greedily(s) for _ in range(20)} == {int(agent.q(s).argmax())}


def test_learning_begins_after_the_warm_up_and_keeps_its_rhythm():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, DQNConfig(**SMALL | {"learning_starts": 100}, update_every=4), seed=0)
    updates = []
    run_gymnasium(agent, env, 120, seed=0, hooks=[lambda p: updates.append(p.step) if p.metrics else None])
    assert updates == [100, 104, 108, 112, 116, 120]


def test_weights_come_back():
    env = gymnasium.make("CartPole-v1")
    first, second = (DQN(env, DQNConfig(**SMALL), seed=seed) for seed in (0, 1))
    s = np.array([0.1, -0.2, 0.05, 0.3], np.float32)
    assert not np.allclose(first.q(s), second.q(s))
    second.set_weights(first.weights())
    np.testing.assert_array_equal(first.q(s), second.q(s))


def test_continuous_actions_are_refused():
    with pytest.raises(TypeError, match="Discrete"):
        DQN(gymnasium.make("Pendulum-v1"))


@pytest.mark.slow
def test_solves_cart_pole():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, total_steps=60_000, seed=0)
    best = 0.0

    def solved(progressed):
        nonlocal best
        if progressed.step % 2_500 == 0:
            best = max(best, evaluate(agent.act_greedily, gymnasium.make("CartPole-v1"), num_episodes=10).mean())
        return best >= 475

    run_gymnasium(agent, env, 60_000, seed=0, hooks=[solved])
    assert best >= 475
