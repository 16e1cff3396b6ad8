"""Rules on distributions: bins and quantiles against the algorithms of the papers, in plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from linear_functions import (
    A_NEXT,
    ACTIONS,
    ATOMS,
    BINS,
    FRACTIONS,
    IN,
    RN,
    ROWS,
    S_NEXT,
    STATE,
    A,
    B,
    S,
    W,
    batch,
    make_binned_q,
    make_binned_v,
    make_policy,
    make_quantile_q,
    normal,
    softmax,
    weight_of,
)
from triax.td_learning import (
    ClippedDoubleQLearning,
    DoubleQLearning,
    ExpectedSarsa,
    QLearning,
    Sarsa,
    SimpleTD,
    SoftClippedDoubleQLearning,
)

W1, W2, W3 = (normal(STATE, ACTIONS * BINS) for _ in range(3))
WPI = normal(STATE, ACTIONS)
PI = softmax((S_NEXT @ WPI).astype(np.float64))
RULES = ["Sarsa", "ExpectedSarsa", "QLearning", "DoubleQLearning", "Clipped", "SoftClipped"]


def make_rule(name, make):
    q, q_targ, other = make(W1), make(W2), make(W3)
    pi, optimizer = make_policy(WPI), optax.sgd(0.5)
    return {
        "Sarsa": lambda: Sarsa(q, q_targ, optimizer),
        "ExpectedSarsa": lambda: ExpectedSarsa(q, pi, q_targ, optimizer),
        "QLearning": lambda: QLearning(q, q_targ=q_targ, optimizer=optimizer),
        "DoubleQLearning": lambda: DoubleQLearning(q, q_targ=q_targ, optimizer=optimizer),
        "Clipped": lambda: ClippedDoubleQLearning(q, q_targ_list=[q_targ, other], optimizer=optimizer),
        "SoftClipped": lambda: SoftClippedDoubleQLearning(q, [pi], [q_targ, other], optimizer),
    }[name]()


def next_rows(name, tables, mean, mix):
    """Row by row what the rule takes of the tables ``[batch, action, ...]`` of each function at the next state."""
    online, target, other = tables
    rows = []
    for i in ROWS:
        one = np.eye(ACTIONS)
        smaller = [min((target[i, a], other[i, a]), key=mean) for a in range(ACTIONS)]
        greedy = [max(range(ACTIONS), key=lambda a, t=t: mean(t[i, a])) for t in (target, other)]
        rows.append(
            {
                "Sarsa": lambda: target[i, A_NEXT[i]],
                "ExpectedSarsa": lambda: mix(target[i], PI[i]),
                "QLearning": lambda: mix(target[i], one[greedy[0]]),
                "DoubleQLearning": lambda: target[i, max(range(ACTIONS), key=lambda a: mean(online[i, a]))],
                "Clipped": lambda: min((t[i, a] for t in (target, other) for a in greedy), key=mean),
                "SoftClipped": lambda: mix(np.stack(smaller), PI[i]),
            }[name]()
        )
    return np.stack(rows)


def check(rule, expected_gradient):
    grads, *_ = rule.grads_and_metrics(batch())
    np.testing.assert_allclose(weight_of(grads), expected_gradient, rtol=5e-4, atol=2e-6)


# ------------------------------------------------------------------ bins


def projected(p, reward, discount):
    """Bellemare et al. 2017, algorithm 1, for one distribution."""
    width, mass = ATOMS[1] - ATOMS[0], np.zeros(BINS)
    for probability, atom in zip(p, ATOMS, strict=True):
        b = (np.clip(reward + discount * atom, ATOMS[0], ATOMS[-1]) - ATOMS[0]) / width
        low, high = int(np.floor(b)), int(np.ceil(b))
        if low == high:
            mass[low] += probability
        else:
            mass[low] += probability * (high - b)
            mass[high] += probability * (b - low)
    return mass


def cross_entropy_gradient(p_next, logits_of, w):
    """Of ``mean(W * cross-entropy)`` towards the projected target; weights count (F21)."""
    target = np.stack([projected(p, r, i) for p, r, i in zip(p_next, RN, IN, strict=True)])

    def loss(w):
        return -jnp.sum(W[:, None] * target * jax.nn.log_softmax(logits_of(w), axis=-1)) / B

    return jax.jit(jax.grad(loss))(w)


def bins_of(w):
    return softmax((S_NEXT @ w).astype(np.float64).reshape(B, ACTIONS, BINS))


def own_row(w):
    return (S @ w).reshape(B, ACTIONS, BINS)[ROWS, A]


@pytest.mark.parametrize("name", RULES)
def test_rules_on_bins(name):  # F21, F53, F55
    tables = [bins_of(w) for w in (W1, W2, W3)]
    p_next = next_rows(name, tables, mean=lambda p: p @ ATOMS, mix=lambda p, weights: weights @ p)
    check(make_rule(name, make_binned_q), cross_entropy_gradient(p_next, own_row, W1))


def test_simple_td_on_bins():
    w, w_targ = normal(STATE, BINS), normal(STATE, BINS)
    rule = SimpleTD(make_binned_v(w), make_binned_v(w_targ), optax.sgd(0.5))
    p_next = softmax((S_NEXT @ w_targ).astype(np.float64))
    check(rule, cross_entropy_gradient(p_next, lambda w: S @ w, w))


# ------------------------------------------------------------------ quantiles


def quantile_mixture(values, weights):
    """The values at which the mixture's distribution function first reaches each fraction."""
    pairs = sorted((v, w / BINS) for row, w in zip(values, weights, strict=True) for v in row)
    levels = np.cumsum([w for _, w in pairs])
    return np.array([pairs[np.searchsorted(levels, tau - 1e-6)][0] for tau in FRACTIONS])


def quantile_gradient(next_values, w):
    """Dabney et al. 2017, eq. 10: mean over own quantiles, sum over those of the target; weighted."""
    target = RN[:, None] + IN[:, None] * next_values

    def loss(w):
        error = target[:, None, :] - own_row(w)[:, :, None]  # [row, own quantile, target quantile]
        huber = jnp.where(jnp.abs(error) <= 1, 0.5 * error**2, jnp.abs(error) - 0.5)
        slope = jnp.abs(FRACTIONS[None, :, None] - (error < 0))
        return jnp.sum(W[:, None, None] * slope * huber) / BINS / B

    return jax.jit(jax.grad(loss))(w)


@pytest.mark.parametrize("name", RULES)
def test_rules_on_quantiles(name):
    tables = [(S_NEXT @ w).reshape(B, ACTIONS, BINS) for w in (W1, W2, W3)]
    values = next_rows(name, tables, mean=np.mean, mix=quantile_mixture)
    check(make_rule(name, make_quantile_q), quantile_gradient(values, W1))


# ------------------------------------------------------------------ what they report


@pytest.mark.parametrize("make", [make_binned_q, make_quantile_q])
def test_td_errors_of_distributions_are_those_of_their_means(make):  # 9.2
    rule = make_rule("Sarsa", make)

    def mean(w, states, actions):
        rows = (states @ w).reshape(B, ACTIONS, BINS)[ROWS, actions]
        return softmax(rows) @ ATOMS if make is make_binned_q else rows.mean(-1)

    inside = batch(Rn=RN / 4)  # no mass is cut off at the ends of the range
    expected = RN / 4 + IN * mean(W2, S_NEXT, A_NEXT) - mean(W1, S, A)
    plain = rule.plain_td_error(inside)
    np.testing.assert_allclose(plain, expected, rtol=1e-3, atol=2e-2 if make is make_binned_q else 1e-4)
    np.testing.assert_allclose(rule.td_error(inside), np.clip(plain, -1, 1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [make_binned_q, make_quantile_q])
def test_sample_weights_scale_the_gradient(make):  # F21
    rule = make_rule("QLearning", make)
    one = weight_of(rule.grads_and_metrics(batch(W=np.ones(B)))[0])
    np.testing.assert_allclose(
        weight_of(rule.grads_and_metrics(batch(W=np.full(B, 0.05)))[0]), 0.05 * one, rtol=1e-3, atol=1e-7
    )


def test_a_rule_learns_the_quantiles_of_a_random_reward():
    """Rewards are 0 or 1 with probability 1/2 and episodes end at once."""
    q = make_quantile_q(np.zeros((STATE, ACTIONS * BINS), np.float32))
    rule = QLearning(q, optimizer=optax.sgd(0.05))
    states = np.tile(np.array([1, 0, 0], np.float32), (2, 1))
    outcome = batch_of(states, np.array([0.0, 1.0]))
    for _ in range(400):
        rule.update(outcome)
    values = np.sort(q.dist_params(states[0], 1)["values"])
    np.testing.assert_allclose(values.mean(), 0.5, atol=0.02)
    assert values[-1] - values[0] > 0.4


def batch_of(states, rewards):
    return batch(
        S=states,
        S_next=states,
        A=np.ones(2, int),
        Rn=rewards,
        In=np.zeros(2),
        W=None,
        logP=np.zeros(2),
        A_next=None,
        logP_next=None,
    )
