"""Functions that estimate a transformed value: targets are made in original units, losses in transformed ones."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import triax
from linear_functions import (
    A_NEXT,
    ACTIONS,
    BINS,
    IN,
    RN,
    S_NEXT,
    STATE,
    A,
    OfState,
    S,
    batch,
    half_squares,
    make_binned_q,
    make_policy,
    make_q,
    make_quantile_q,
    make_v,
    normal,
    pick,
    softmax,
    weight_of,
)
from triax.losses.value_losses import mse
from triax.losses.value_transforms import LogTransform
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

TRANSFORM = LogTransform(2.0)
W1, W2, W3, WPI = (normal(STATE, ACTIONS) for _ in range(4))
PI = softmax(S_NEXT @ WPI)
ARGS = {"optimizer": optax.sgd(0.5), "loss_function": mse}


def f(x):
    return 2 * np.sign(x) * np.log(1 + np.abs(x) / 2)


def f_inverse(y):
    return 2 * np.sign(y) * (np.exp(np.abs(y) / 2) - 1)


Q2, Q3 = f_inverse(S_NEXT @ W2), f_inverse(S_NEXT @ W3)
NEXT_VALUES = {
    "Sarsa": pick(Q2, A_NEXT),
    "ExpectedSarsa": np.sum(PI * Q2, axis=1),
    "QLearning": Q2.max(axis=1),
    "DoubleQLearning": pick(Q2, (S_NEXT @ W1).argmax(axis=1)),
    "SoftQLearning": np.log(np.exp(Q2).sum(axis=1)),  # F54
    "Clipped": np.min([pick(q, p.argmax(axis=1)) for q in (Q2, Q3) for p in (Q2, Q3)], axis=0),
    "SoftClipped": np.sum(PI * np.minimum(Q2, Q3), axis=1),
}


def make_rule(name):
    q, q_targ, other = (make_q(w, value_transform=TRANSFORM) for w in (W1, W2, W3))
    pi = make_policy(WPI)
    return {
        "Sarsa": lambda: Sarsa(q, q_targ, **ARGS),
        "ExpectedSarsa": lambda: ExpectedSarsa(q, pi, q_targ, **ARGS),
        "QLearning": lambda: QLearning(q, q_targ=q_targ, **ARGS),
        "DoubleQLearning": lambda: DoubleQLearning(q, q_targ=q_targ, **ARGS),
        "SoftQLearning": lambda: SoftQLearning(q, q_targ, **ARGS),
        "Clipped": lambda: ClippedDoubleQLearning(q, q_targ_list=[q_targ, other], **ARGS),
        "SoftClipped": lambda: SoftClippedDoubleQLearning(q, [pi], [q_targ, other], **ARGS),
    }[name]()


@pytest.mark.parametrize("name", NEXT_VALUES)
def test_targets_are_made_in_original_units(name):  # F53, F54
    target = f(RN + IN * NEXT_VALUES[name])
    gradient = jax.jit(jax.grad(lambda w: half_squares(target, pick(S @ w, A))))(W1)
    rule = make_rule(name)
    _, td_error = rule.update(batch(), return_td_error=True)
    np.testing.assert_allclose(weight_of(rule.q), W1 - 0.5 * gradient, rtol=5e-4, atol=1e-5)
    np.testing.assert_allclose(td_error, target - pick(S @ W1, A), rtol=1e-3, atol=1e-4)


def test_targets_of_state_values_are_made_in_original_units():
    w, w_targ = normal(STATE), normal(STATE)
    v, v_targ = (make_v(x, value_transform=TRANSFORM) for x in (w, w_targ))
    rule = SimpleTD(v, v_targ, **ARGS)
    target = f(RN + IN * f_inverse(S_NEXT @ w_targ))
    gradient = jax.grad(lambda w: half_squares(target, S @ w))(w)
    np.testing.assert_allclose(weight_of(rule.grads_and_metrics(batch())[0]), gradient, rtol=5e-4, atol=1e-5)


def test_a_target_may_estimate_in_other_units():  # F62
    """The target's own inverse is undone, and the metric compares like with like."""
    q, q_targ = make_q(W1), make_q(W2, value_transform=TRANSFORM)
    rule = QLearning(q, q_targ=q_targ, **ARGS)
    expected = RN + IN * Q2.max(axis=1) - pick(S @ W1, A)
    metrics, td_error = rule.update(batch(), return_td_error=True)
    np.testing.assert_allclose(td_error, expected, rtol=1e-3, atol=1e-4)
    apart = np.mean(pick(S @ W1, A) - pick(f_inverse(S @ W2), A)) / 5
    np.testing.assert_allclose(metrics["QLearning/td_error_targ"], apart, rtol=1e-3, atol=1e-5)


def test_clipped_targets_may_estimate_in_different_units():  # F60
    targets = [make_q(W2, value_transform=TRANSFORM), make_q(W3)]
    rule = ClippedDoubleQLearning(make_q(W1), q_targ_list=targets, **ARGS)
    q3 = S_NEXT @ W3
    smallest = np.min([pick(q, p.argmax(axis=1)) for q in (Q2, q3) for p in (Q2, q3)], axis=0)
    expected = RN + IN * smallest - pick(S @ W1, A)
    np.testing.assert_allclose(rule.td_error(batch()), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [make_binned_q, make_quantile_q])
def test_distributions_are_backed_up_in_original_units(make):
    """Of a certain outcome: all mass sits at the transformed target."""
    value = 0.7
    w = np.zeros((STATE, ACTIONS * BINS), np.float32)
    q = make(w, value_transform=TRANSFORM)
    rule = QLearning(q, optimizer=optax.sgd(0.1))
    made = jax.tree.map(jnp.asarray, batch(In=np.zeros(5), Rn=np.full(5, value)))
    G = rule.target_func(rule.target_params, rule.target_function_state, rule.rng, made)
    if make is make_quantile_q:
        np.testing.assert_allclose(G["values"], f(value), rtol=1e-5)
    else:
        p = softmax(np.asarray(G["logits"], np.float64))
        np.testing.assert_allclose(p @ q.proba_dist.atoms, f(value), rtol=1e-4)
        assert (p > 1e-6).sum(axis=1).max() <= 2


def test_a_transformed_function_learns_values_in_original_units():
    v = triax.V(OfState(np.zeros(STATE, np.float32)), make_v(normal(STATE)), value_transform=TRANSFORM)
    rule = SimpleTD(v, optimizer=optax.sgd(0.5), loss_function=mse)
    state = np.array([1, 0, 0], np.float32)
    ends = batch(S=np.tile(state, (5, 1)), Rn=np.full(5, 4.0), In=np.zeros(5), W=None)
    for _ in range(100):
        rule.update(ends)
    np.testing.assert_allclose(v(state), 4.0, rtol=1e-3)
