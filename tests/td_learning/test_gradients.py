"""A batch through each rule gives the gradient that plain jax gives for the formula of the rule."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from gymnasium.spaces import Box, Discrete

import triax
from triax.proba_dists import NormalDist
from triax.reward_tracing import TransitionBatch
from triax.td_learning import (
    ClippedDoubleQLearning,
    DoubleQLearning,
    ExpectedSarsa,
    QLearning,
    Sarsa,
    SimpleTD,
    SoftClippedDoubleQLearning,
    SoftQLearning,
)

B, STATE, ACTIONS = 5, 3, 4
RNG = np.random.default_rng(0)
DISCRETE = SimpleNamespace(observation_space=Box(-np.inf, np.inf, (STATE,), np.float32), action_space=Discrete(ACTIONS))
REALS = SimpleNamespace(
    observation_space=DISCRETE.observation_space, action_space=Box(-np.inf, np.inf, (2,), np.float32)
)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


S, S_NEXT, RN, W = normal(B, STATE), normal(B, STATE), normal(B), RNG.uniform(0.2, 2, B).astype(np.float32)
IN = np.array([0.9, 0.0, 0.81, 0.9, 0.9], np.float32)
A, A_NEXT = RNG.integers(ACTIONS, size=B), RNG.integers(ACTIONS, size=B)
REAL_A = normal(B, 2)
ROWS = np.arange(B)


def batch(actions=A, next_actions=A_NEXT):
    return TransitionBatch(S, actions, np.zeros(B), RN, IN, S_NEXT, next_actions, np.zeros(B), W)


class Linear(nnx.Module):
    """``S @ w``, or ``[S, A] @ w`` for a function of state and action."""

    def __init__(self, w):
        self.w = nnx.Param(jnp.asarray(w))


class LinearS(Linear):
    def __call__(self, S, is_training):
        return S @ self.w[...]


class LinearSA(Linear):
    def __call__(self, S, A, is_training):
        return jnp.concatenate([S, jnp.tanh(A)], axis=-1) @ self.w[...]


class LinearLogits(Linear):
    def __call__(self, S, is_training):
        return {"logits": S @ self.w[...]}


class LinearNormal(Linear):
    def __call__(self, S, is_training):
        mu = S @ self.w[...]
        return {"mu": mu, "logvar": jnp.full_like(mu, -40.0)}


def q_function(w, env=DISCRETE):
    return triax.Q(LinearS(w) if env is DISCRETE else LinearSA(w), env, random_seed=0)


W1, W2, W3, WPI = (
    normal(STATE, ACTIONS),
    normal(STATE, ACTIONS),
    normal(STATE, ACTIONS),
    normal(STATE, ACTIONS),
)
R1, R2, R3, RPI = normal(STATE + 2), normal(STATE + 2), normal(STATE + 2), normal(STATE, 2)


def half_squares(target, prediction):
    """mean(W * 0.5 * error^2), written out."""
    return jnp.sum(W * 0.5 * (target - prediction) ** 2) / B


def check(rule, expected_gradient, transitions):
    """The gradient, the step of an SGD update, and the TD error of ``update``."""
    grads, _, metrics, td_error = rule.grads_and_metrics(transitions)
    np.testing.assert_allclose(grads["w"], expected_gradient, rtol=2e-4, atol=1e-6)
    name = type(rule).__name__
    np.testing.assert_allclose(metrics[f"{name}/grads_norm"], jnp.linalg.norm(expected_gradient), rtol=2e-4)
    np.testing.assert_allclose(metrics[f"{name}/td_error"], np.mean(W * td_error), rtol=1e-4, atol=1e-6)
    before = np.asarray((rule.v if isinstance(rule, SimpleTD) else rule.q).params["w"])
    _, updated_error = rule.update(transitions, return_td_error=True)
    after = (rule.v if isinstance(rule, SimpleTD) else rule.q).params["w"]
    np.testing.assert_allclose(after, before - 0.5 * expected_gradient, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(updated_error, td_error, rtol=1e-5, atol=1e-6)


ARGS = {"optimizer": optax.sgd(0.5), "loss_function": triax.value_losses.mse}


def pick(q, actions):
    return q[ROWS, actions]


def test_simple_td():
    w, w_targ = normal(STATE), normal(STATE)
    v, v_targ = (triax.V(LinearS(x), DISCRETE, random_seed=0) for x in (w, w_targ))
    target = RN + IN * (S_NEXT @ w_targ)
    check(SimpleTD(v, v_targ, **ARGS), jax.grad(lambda w: half_squares(target, S @ w))(w), batch())


def discrete_gradient(target):
    return jax.grad(lambda w: half_squares(target, pick(S @ w, A)))(W1)


def test_sarsa():
    target = RN + IN * pick(S_NEXT @ W2, A_NEXT)
    check(Sarsa(q_function(W1), q_function(W2), **ARGS), discrete_gradient(target), batch())


def test_expected_sarsa():
    pi = triax.Policy(LinearLogits(WPI), DISCRETE, random_seed=0)
    z = np.exp(S_NEXT @ WPI)
    target = RN + IN * np.sum(z / z.sum(1, keepdims=True) * (S_NEXT @ W2), axis=1)
    check(ExpectedSarsa(q_function(W1), pi, q_function(W2), **ARGS), discrete_gradient(target), batch())


def test_q_learning():
    target = RN + IN * (S_NEXT @ W2).max(axis=1)
    check(QLearning(q_function(W1), q_targ=q_function(W2), **ARGS), discrete_gradient(target), batch())


def test_double_q_learning_picks_with_q_and_evaluates_with_q_targ():  # F55
    target = RN + IN * pick(S_NEXT @ W2, (S_NEXT @ W1).argmax(axis=1))
    check(DoubleQLearning(q_function(W1), q_targ=q_function(W2), **ARGS), discrete_gradient(target), batch())


def test_soft_q_learning():
    target = RN + IN * 0.3 * np.log(np.exp(S_NEXT @ W2 / 0.3).sum(axis=1))
    rule = SoftQLearning(q_function(W1), q_function(W2), temperature=0.3, **ARGS)
    check(rule, discrete_gradient(target), batch())


def test_clipped_double_q_learning():
    q2, q3 = S_NEXT @ W2, S_NEXT @ W3
    candidates = [pick(q, other.argmax(axis=1)) for q in (q2, q3) for other in (q2, q3)]
    target = RN + IN * np.min(candidates, axis=0)
    rule = ClippedDoubleQLearning(q_function(W1), q_targ_list=[q_function(W2), q_function(W3)], **ARGS)
    check(rule, discrete_gradient(target), batch())


def test_soft_clipped_double_q_learning_with_discrete_actions_takes_the_expectation():  # F60
    pi = triax.Policy(LinearLogits(WPI), DISCRETE, random_seed=0)
    z = np.exp(S_NEXT @ WPI)
    p = z / z.sum(1, keepdims=True)
    target = RN + IN * np.sum(p * np.minimum(S_NEXT @ W2, S_NEXT @ W3), axis=1)
    rule = SoftClippedDoubleQLearning(q_function(W1), [pi], [q_function(W2), q_function(W3)], **ARGS)
    check(rule, discrete_gradient(target), batch())


def features(states, actions):
    return np.concatenate([states, np.tanh(actions)], axis=-1)


def real_gradient(target):
    return jax.grad(lambda w: half_squares(target, features(S, REAL_A) @ w))(R1)


def real_policy():
    return triax.Policy(
        LinearNormal(RPI),
        REALS,
        proba_dist=NormalDist(REALS.action_space, clip_logvar=(-50.0, 20.0)),
        random_seed=0,
    )


NEXT_FEATURES = features(S_NEXT, S_NEXT @ RPI)


def test_q_learning_with_continuous_actions_takes_the_mode_of_the_target_policy():
    target = RN + IN * (NEXT_FEATURES @ R2)
    rule = QLearning(q_function(R1, REALS), real_policy(), q_function(R2, REALS), **ARGS)
    check(rule, real_gradient(target), batch(REAL_A, None))


def test_double_q_learning_with_continuous_actions_evaluates_the_mode_by_q_targ():
    target = RN + IN * (NEXT_FEATURES @ R2)
    rule = DoubleQLearning(q_function(R1, REALS), real_policy(), q_function(R2, REALS), **ARGS)
    check(rule, real_gradient(target), batch(REAL_A, None))


@pytest.mark.parametrize("Rule", [ClippedDoubleQLearning, SoftClippedDoubleQLearning])
def test_clipped_rules_with_continuous_actions_take_the_smaller_value(Rule):
    """The policy is nearly deterministic, so that its sample is its mode."""
    target = RN + IN * np.minimum(NEXT_FEATURES @ R2, NEXT_FEATURES @ R3)
    targets = [q_function(R2, REALS), q_function(R3, REALS)]
    rule = Rule(q_function(R1, REALS), [real_policy()], targets, **ARGS)
    check(rule, real_gradient(target), batch(REAL_A, None))
