"""Each function in a target runs as what it is: its own network, in evaluation mode, on its own inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import triax
from compilations import counted_compilations
from linear_functions import (
    A_NEXT,
    ACTIONS,
    DISCRETE,
    IN,
    REAL_A,
    REALS,
    RN,
    S_NEXT,
    STATE,
    A,
    B,
    Linear,
    OfState,
    S,
    Tree,
    batch,
    make_policy,
    make_q,
    make_real_policy,
    make_real_q,
    make_v,
    normal,
    pick,
    real_batch,
    softmax,
    weight_of,
)
from triax.losses.value_losses import mse
from triax.reward_tracing import NStep
from triax.td_learning import (
    ClippedDoubleQLearning,
    DoubleQLearning,
    ExpectedSarsa,
    QLearning,
    Sarsa,
    SimpleTD,
    SoftClippedDoubleQLearning,
)

W1, W2, W3 = (normal(STATE, ACTIONS) for _ in range(3))
PREDICTED = pick(S @ W1, A)
ARGS = {"optimizer": optax.sgd(0.5), "loss_function": mse}


# ------------------------------------------------------------------ own networks, own inputs


class Deep(nnx.Module):
    """Another architecture: a hidden layer."""

    def __init__(self, hidden, w):
        self.hidden, self.w = nnx.Param(jnp.asarray(hidden)), nnx.Param(jnp.asarray(w))

    def __call__(self, S, is_training):
        return jnp.tanh(S @ self.hidden[...]) @ self.w[...]


def test_a_target_may_have_another_architecture_and_preprocessor():  # F62
    hidden, w = normal(STATE, 7), normal(7, ACTIONS)
    q_targ = triax.Q(
        Deep(hidden, w), DISCRETE, observation_preprocessor=lambda rng, s: 2 * jnp.atleast_2d(s), random_seed=0
    )
    rule = QLearning(make_q(W1), q_targ=q_targ, **ARGS)
    values = np.tanh(2 * S_NEXT @ hidden) @ w
    np.testing.assert_allclose(rule.td_error(batch()), RN + IN * values.max(axis=1) - PREDICTED, rtol=1e-3, atol=1e-4)
    metrics = rule.update(batch())
    apart = np.mean(PREDICTED - pick(np.tanh(2 * S @ hidden) @ w, A)) / B
    np.testing.assert_allclose(metrics["QLearning/td_error_targ"], apart, rtol=1e-3, atol=1e-5)


def test_each_clipped_target_is_its_own_network():  # F60
    hidden, w = normal(STATE, 7), normal(7, ACTIONS)
    deep = triax.Q(
        Deep(hidden, w), DISCRETE, observation_preprocessor=lambda rng, s: 2 * jnp.atleast_2d(s), random_seed=0
    )
    linear = make_q(W2)
    one, other = np.tanh(2 * S_NEXT @ hidden) @ w, S_NEXT @ W2
    smallest = np.min([pick(q, p.argmax(axis=1)) for q in (one, other) for p in (one, other)], axis=0)
    for targets in ([deep, linear], [linear, deep]):
        rule = ClippedDoubleQLearning(make_q(W1), q_targ_list=targets, **ARGS)
        np.testing.assert_allclose(rule.td_error(batch()), RN + IN * smallest - PREDICTED, rtol=1e-3, atol=1e-4)
        assert rule.q_targ_list == targets


def test_double_q_learning_works_with_different_architectures():  # F55, F62
    hidden, w = normal(STATE, 7), normal(7, ACTIONS)
    rule = DoubleQLearning(make_q(W1), q_targ=triax.Q(Deep(hidden, w), DISCRETE, random_seed=0), **ARGS)
    following = pick(np.tanh(S_NEXT @ hidden) @ w, (S_NEXT @ W1).argmax(axis=1))
    np.testing.assert_allclose(rule.td_error(batch()), RN + IN * following - PREDICTED, rtol=1e-3, atol=1e-4)


def test_a_policy_sees_states_and_actions_its_own_way():
    """Raw actions are decoded by the policy, and preprocessed by the critic."""
    r1, r2, r_pi = normal(STATE + 2), normal(STATE + 2), normal(STATE, 2)
    pi = make_real_policy(r_pi, observation_preprocessor=lambda rng, s: 3 * jnp.atleast_2d(s))
    q_targ = make_real_q(r2, action_preprocessor=lambda rng, a: 0.5 * jnp.atleast_2d(a))
    rule = QLearning(make_real_q(r1), pi, q_targ, **ARGS)
    actions = 0.5 * (3 * S_NEXT @ r_pi)
    following = np.concatenate([S_NEXT, np.tanh(actions)], axis=1) @ r2
    predicted = np.concatenate([S, np.tanh(REAL_A)], axis=1) @ r1
    np.testing.assert_allclose(rule.td_error(real_batch()), RN + IN * following - predicted, rtol=1e-3, atol=1e-4)


def test_rules_that_try_all_actions_take_any_action_preprocessor():
    """No raw action of the policy enters the q-function."""

    class OfIndex(Linear):
        def __call__(self, S, A, is_training):
            return jnp.take_along_axis(S @ self.w[...], A[:, None], axis=1)[:, 0]

    def as_index(rng, a):
        return jnp.atleast_1d(a)

    q, q_targ = (triax.Q(OfIndex(w), DISCRETE, action_preprocessor=as_index, random_seed=0) for w in (W1, W2))
    pi = make_policy(W3)
    p = softmax(S_NEXT @ W3)
    expected = RN + IN * np.sum(p * (S_NEXT @ W2), axis=1) - PREDICTED
    for rule in (ExpectedSarsa(q, pi, q_targ, **ARGS), SoftClippedDoubleQLearning(q, [pi], [q_targ, q_targ], **ARGS)):
        np.testing.assert_allclose(rule.td_error(batch()), expected, rtol=1e-3, atol=1e-4)


# ------------------------------------------------------------------ evaluation mode


class NoisyCritic(nnx.Module):
    """Dropout and batch normalization, which evaluation mode turns off and freezes."""

    def __init__(self, w, rngs):
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.norm = nnx.BatchNorm(STATE, use_scale=False, use_bias=False, rngs=rngs)
        self.w = nnx.Param(jnp.asarray(w))

    def __call__(self, S, is_training):
        return self.dropout(self.norm(S)) @ self.w[...]


def noisy_q(w):
    return triax.Q(lambda rngs: NoisyCritic(w, rngs), DISCRETE, random_seed=0)


def frozen(states):
    """Batch normalization by the statistics that it starts with."""
    return states / np.sqrt(1 + 1e-5)


def test_targets_run_in_evaluation_mode_and_keep_their_state():  # F63
    q_targ = noisy_q(W2)
    state = jax.tree.map(np.array, q_targ.function_state)
    rule = QLearning(make_q(W1), q_targ=q_targ, **ARGS)
    expected = RN + IN * (frozen(S_NEXT) @ W2).max(axis=1) - PREDICTED
    np.testing.assert_allclose(rule.td_error(batch()), expected, rtol=1e-3, atol=1e-4)
    rule.update(batch())
    jax.tree.map(np.testing.assert_array_equal, q_targ.function_state, state)


def test_a_function_that_is_its_own_target_is_trained_in_training_mode_towards_its_evaluation():  # 9.1
    q = noisy_q(W1)
    rule = QLearning(q, **ARGS)
    G = rule.target_func(rule.target_params, rule.target_function_state, rule.rng, batch())
    np.testing.assert_allclose(G, RN + IN * (frozen(S_NEXT) @ W1).max(axis=1), rtol=1e-3, atol=1e-4)
    before = jax.tree.map(np.array, q.function_state)
    errors = [np.array(rule.plain_td_error(batch())) for _ in range(2)]
    assert not np.allclose(*errors)  # dropout
    rule.update(batch())
    mean = 0.99 * before["norm"]["mean"] + 0.01 * S.mean(0)
    np.testing.assert_allclose(q.function_state["norm"]["mean"], mean, rtol=1e-4, atol=1e-6)


# ------------------------------------------------------------------ Sarsa


def test_rows_whose_next_action_nobody_took_weigh_nothing():
    marked = np.zeros(B, np.float32)
    marked[[1, 2]] = np.nan  # row 1 does not bootstrap, so it needs no action
    rule = Sarsa(make_q(W1), make_q(W2), **ARGS)
    error = RN + IN * pick(S_NEXT @ W2, A_NEXT) - PREDICTED
    error[2] = 0
    made = batch(logP_next=marked)
    metrics, td_error = rule.update(made, return_td_error=True)
    np.testing.assert_allclose(td_error, error, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(metrics["Sarsa/loss"], np.mean(made.W * 0.5 * error**2), rtol=1e-3)
    np.testing.assert_allclose(metrics["Sarsa/td_error"], np.mean(made.W * error), rtol=1e-3, atol=1e-5)
    grads = weight_of(rule.grads_and_metrics(batch(logP_next=np.full(B, np.nan), In=np.full(B, 0.9)))[0])
    np.testing.assert_array_equal(grads, 0)


def test_sarsa_learns_from_traced_episodes_with_a_time_limit():
    tracer, rng = NStep(n=1, gamma=0.9), np.random.default_rng(0)
    states = rng.normal(size=(4, STATE)).astype(np.float32)
    for t in range(3):
        last = {"truncated": True, "s_next": states[3]} if t == 2 else {}
        tracer.add(states[t], t, 1.0, False, logp=-1.0, **last)
    made = tracer.flush()
    td_error = Sarsa(make_q(W1), **ARGS).td_error(made)
    q = states @ W1
    np.testing.assert_allclose(td_error, [1 + 0.9 * q[1, 1] - q[0, 0], 1 + 0.9 * q[2, 2] - q[1, 1], 0], rtol=1e-4)


def test_sarsa_refuses_batches_without_next_actions():
    rule = Sarsa(make_q(W1), **ARGS)
    with pytest.raises(ValueError, match=r"Sarsa: batch\.A_next is missing"):
        rule.update(batch(A_next=None, logP_next=None))


def test_other_rules_need_no_next_actions():
    made = batch(A_next=None, logP_next=None)
    for rule in (QLearning(make_q(W1), **ARGS), SimpleTD(make_v(normal(STATE)), **ARGS)):
        rule.update(made)
        rule.raise_if_not_finite()


# ------------------------------------------------------------------ target policies


def greedy(values):
    return np.eye(ACTIONS)[values.argmax(axis=1)]


POLICIES = {
    "Policy": (lambda: make_policy(W3), lambda: softmax(S_NEXT @ W3)),
    "EpsilonGreedy": (
        lambda: triax.EpsilonGreedy(make_q(W3), epsilon=0.4),
        lambda: 0.6 * greedy(S_NEXT @ W3) + 0.1,
    ),
    "BoltzmannPolicy": (
        lambda: triax.BoltzmannPolicy(make_q(W3), temperature=0.5),
        lambda: softmax((S_NEXT @ W3) / 0.5),
    ),
    "RandomPolicy": (lambda: triax.RandomPolicy(DISCRETE, random_seed=0), lambda: np.full((B, ACTIONS), 0.25)),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_the_expectation_may_be_under_any_policy(kind):
    make, probabilities = POLICIES[kind]
    rule = ExpectedSarsa(make_q(W1), make(), make_q(W2), **ARGS)
    expected = RN + IN * np.sum(probabilities() * (S_NEXT @ W2), axis=1) - PREDICTED
    np.testing.assert_allclose(rule.td_error(batch()), expected, rtol=1e-3, atol=1e-4)
    rule.update(batch())
    rule.raise_if_not_finite()


@pytest.mark.parametrize(
    ("make", "name", "other", "probabilities"),
    [
        (triax.EpsilonGreedy, "epsilon", 0.8, lambda: 0.2 * greedy(S_NEXT @ W3) + 0.2),
        (triax.BoltzmannPolicy, "temperature", 2.0, lambda: softmax((S_NEXT @ W3) / 2)),
    ],
)
def test_numbers_of_the_policy_take_effect_and_compile_nothing(make, name, other, probabilities):  # F52
    pi = make(make_q(W3))
    rule = ExpectedSarsa(make_q(W1), pi, make_q(W2), **ARGS)
    rule.update(batch())
    predicted = pick(S @ weight_of(rule.q), A)
    rule.td_error(batch())
    setattr(pi, name, other)
    with counted_compilations() as count:
        td_error = np.array(rule.td_error(batch()))
    expected = RN + IN * np.sum(probabilities() * (S_NEXT @ W2), axis=1) - predicted
    np.testing.assert_allclose(td_error, expected, rtol=1e-3, atol=1e-4)
    assert count.compilations == 0


def test_ties_at_the_maximum_share_the_weight():
    """With the maximum of one function evaluated by another, a tie is a mean."""
    tied = np.array(W1)
    tied[:, 1] = tied[:, 0]
    tied[:, 2:] = tied[:, :1] - 100 * np.sign(S_NEXT[:1].T)  # far below in the first row
    rule = DoubleQLearning(make_q(tied), q_targ=make_q(W2), **ARGS)
    q = S_NEXT @ W2
    td_error = rule.td_error(batch())
    expected = RN[0] + IN[0] * (q[0, 0] + q[0, 1]) / 2 - (S @ tied)[0, A[0]]
    np.testing.assert_allclose(td_error[0], expected, rtol=1e-3)


def as_certain(mu):
    return {"mu": mu, "logvar": jnp.full_like(mu, -40.0)}


@pytest.mark.parametrize("Rule", [ClippedDoubleQLearning, SoftClippedDoubleQLearning])
def test_several_policies_and_functions_meet_in_pairs(Rule):
    """With nearly deterministic policies the sample is the mode: the smallest of all four pairs."""
    r_pis, r_qs, r1 = [normal(STATE, 2), normal(STATE, 2)], [normal(STATE + 2), normal(STATE + 2)], normal(STATE + 2)
    dist = triax.proba_dists.NormalDist(REALS.action_space, clip_logvar=(-50.0, 20.0))
    pis = [triax.Policy(Tree(OfState(r), as_certain), REALS, proba_dist=dist, random_seed=0) for r in r_pis]
    rule = Rule(make_real_q(r1), pis, [make_real_q(r) for r in r_qs], **ARGS)
    assert rule.pi_targ_list == pis
    pairs = [np.concatenate([S_NEXT, np.tanh(S_NEXT @ p)], axis=1) @ q for p in r_pis for q in r_qs]
    predicted = np.concatenate([S, np.tanh(REAL_A)], axis=1) @ r1
    expected = RN + IN * np.min(pairs, axis=0) - predicted
    np.testing.assert_allclose(rule.td_error(real_batch()), expected, rtol=1e-3, atol=1e-4)
