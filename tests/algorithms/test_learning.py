"""Whole trainings that have to reach something; each takes minutes."""

import gymnasium
import jax
import numpy as np
import pytest
from flax import nnx

from jax_envs import CartPole
from triax.algorithms import (
    DistillationConfig,
    DistillationTrainConfig,
    EvalConfig,
    PPOConfig,
    TrainConfig,
    eval_rollout,
    train_distillation,
    train_ppo,
)
from triax.networks import LSTM, Dense, DistributionSampler, PPOAdapter, Sequential, make_mlp, make_mlp_actor_critic

ENV = CartPole()
UNWATCHED = EvalConfig(enabled=False)
PPO = PPOConfig(
    n_envs=8,
    rollout_length=32,
    total_steps=99_840,
    n_minibatches=1,
    n_epochs=20,
    learning_rate=1e-3,
    gae_lambda=0.8,
    discounting_factor=0.98,
    gradient_clipping=0.5,
)


def mlp(seed, hidden=(64, 64)):
    sizes = list(hidden)
    space: gymnasium.Space = ENV.action_space
    options = {"activation": "tanh", "normalize_obs": False, "entropy_weight": 0.0}
    return make_mlp_actor_critic(4, space, sizes, sizes, nnx.Rngs(seed), **options)


def reward_of(network):
    return float(eval_rollout(ENV, network, 64, 500, jax.random.key(123))["eval/episode_reward/mean"])


@pytest.mark.slow
def test_ppo_balances_a_pole_within_100k_steps():
    reached = []
    for seed in range(3):
        network = mlp(seed)
        result = train_ppo(ENV, network, TrainConfig(PPO, eval=UNWATCHED), seed=seed)
        assert result.total_steps <= 100_000
        reached.append(reward_of(network))
    assert np.median(reached) >= 475, reached


@pytest.mark.slow
def test_a_student_of_another_architecture_reaches_95_percent_of_its_teacher():
    teacher = mlp(0)
    train_ppo(ENV, teacher, TrainConfig(PPO, eval=UNWATCHED), seed=0)
    learning = DistillationConfig(n_envs=16, rollout_length=32, total_steps=100_000, learning_rate=1e-3)
    config = DistillationTrainConfig(learning, eval=UNWATCHED)
    reached = []
    for seed in range(1, 4):
        rngs = nnx.Rngs(seed)
        sampler = DistributionSampler(ENV.action_space, rngs, 0.0)
        student = PPOAdapter(Sequential([LSTM(4, 16, rngs), Dense(16, 2, rngs), sampler]), make_mlp([4, 8, 1], rngs))
        assert reward_of(student) < 0.5 * reward_of(teacher)
        train_distillation(ENV, teacher, student, config, seed=seed)
        reached.append(reward_of(student))
    assert min(reached) >= 0.95 * reward_of(teacher), reached
