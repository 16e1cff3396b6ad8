"""Tabular rules reach the values of exact dynamic programming."""

import numpy as np
import optax
import pytest

import triax
from tabular import GAMMA, FrozenLake, Table
from triax.reward_tracing import NStep, TransitionBatch
from triax.td_learning import DoubleQLearning, ExpectedSarsa, QLearning, Sarsa, SimpleTD, SoftQLearning

SWEEPS = 150


@pytest.fixture(params=[True, False], ids=["slippery", "not slippery"], scope="module")
def lake(request):
    return FrozenLake(is_slippery=request.param)


def make_q(lake):
    return triax.Q(Table(lake.num_states, lake.num_actions), lake.spaces, random_seed=0)


def exact_steps(batch):
    """A learning rate with which one step on all weighted transitions is one exact backup."""
    return optax.sgd(float(batch.batch_size))


def learned_table(f):
    return np.asarray(f.params["table"])


def skewed_policy(lake):
    policy = np.random.default_rng(0).dirichlet(np.ones(lake.num_actions), lake.num_states)
    return policy.astype(np.float32)


def test_q_learning_reaches_the_optimal_values(lake):
    batch = lake.transitions()
    rule = QLearning(make_q(lake), optimizer=exact_steps(batch), loss_function=triax.value_losses.mse)
    for _ in range(SWEEPS):
        rule.update(batch)
    np.testing.assert_allclose(learned_table(rule.q), lake.optimal_q(), atol=1e-4)


def test_double_q_learning_reaches_the_optimal_values(lake):
    batch = lake.transitions()
    q1, q2 = make_q(lake), make_q(lake)
    rules = [
        DoubleQLearning(q, q_targ=other, optimizer=exact_steps(batch), loss_function=triax.value_losses.mse)
        for q, other in ((q1, q2), (q2, q1))
    ]
    for _ in range(SWEEPS):
        for rule in rules:
            rule.update(batch)
    for q in (q1, q2):
        np.testing.assert_allclose(learned_table(q), lake.optimal_q(), atol=1e-4)


def test_sarsa_reaches_the_values_of_the_policy_that_it_follows(lake):
    policy = skewed_policy(lake)
    batch = lake.transitions(policy)
    rule = Sarsa(make_q(lake), optimizer=exact_steps(batch), loss_function=triax.value_losses.mse)
    for _ in range(SWEEPS):
        rule.update(batch)
    np.testing.assert_allclose(learned_table(rule.q), lake.policy_q(policy), atol=1e-4)


def test_expected_sarsa_reaches_the_values_of_its_target_policy(lake):
    policy = skewed_policy(lake)
    pi = triax.Policy(policy_function(lake), lake.spaces, random_seed=0)
    pi.params = {"table": np.log(policy)}
    batch = lake.transitions()
    rule = ExpectedSarsa(make_q(lake), pi, optimizer=exact_steps(batch), loss_function=triax.value_losses.mse)
    for _ in range(SWEEPS):
        rule.update(batch)
    np.testing.assert_allclose(learned_table(rule.q), lake.policy_q(policy), atol=1e-4)


def test_soft_q_learning_reaches_the_fixed_point_of_soft_value_iteration(lake):
    temperature, batch = 0.1, lake.transitions()
    rule = SoftQLearning(
        make_q(lake),
        optimizer=exact_steps(batch),
        loss_function=triax.value_losses.mse,
        temperature=temperature,
    )
    for _ in range(SWEEPS):
        rule.update(batch)
    q = np.zeros((lake.num_states, lake.num_actions))
    for _ in range(500):
        q = lake.backup(temperature * np.log(np.exp(q / temperature).sum(axis=1)))
    np.testing.assert_allclose(learned_table(rule.q), q, atol=1e-4)


def test_simple_td_reaches_the_values_of_the_policy_that_it_follows(lake):
    policy = skewed_policy(lake)
    batch = lake.transitions()
    batch.W = batch.W * policy[batch.S, batch.A]
    v = triax.V(Table(lake.num_states), lake.spaces, random_seed=0)
    rule = SimpleTD(v, optimizer=exact_steps(batch), loss_function=triax.value_losses.mse)
    for _ in range(SWEEPS):
        rule.update(batch)
    exact = (policy * lake.policy_q(policy)).sum(axis=1)
    np.testing.assert_allclose(learned_table(v), exact, atol=1e-4)


def policy_function(lake):
    class Logits(Table):
        def __call__(self, S, is_training):
            return {"logits": super().__call__(S, is_training)}

    return Logits(lake.num_states, lake.num_actions)


def test_q_learning_from_sampled_episodes_comes_near_the_optimal_values(lake):
    """From a random policy's own episodes, traced and averaged with shrinking steps."""
    pi = triax.RandomPolicy(lake.env, random_seed=0)
    tracer, batches = NStep(n=1, gamma=GAMMA), []
    s, _ = lake.env.reset(seed=0)
    for _ in range(8_000):
        a = pi(s)
        s_next, r, terminated, truncated, _ = lake.env.step(a)
        tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
        while tracer:
            batches.append(tracer.pop())
        s = lake.env.reset()[0] if terminated or truncated else s_next
    data = TransitionBatch(*(np.concatenate(x) if x[0] is not None else None for x in zip(*batches)))
    counts = np.bincount(data.S * lake.num_actions + data.A, minlength=lake.num_states * lake.num_actions)
    data.W = 1 / counts[data.S * lake.num_actions + data.A]
    rule = QLearning(make_q(lake), optimizer=exact_steps(data), loss_function=triax.value_losses.mse)
    for _ in range(100):
        rule.update(data)
    visited = counts.reshape(lake.num_states, lake.num_actions) >= 60
    assert visited.sum() >= 20
    np.testing.assert_allclose(learned_table(rule.q)[visited], lake.optimal_q()[visited], atol=0.1)
