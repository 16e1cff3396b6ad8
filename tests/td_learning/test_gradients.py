"""A batch through each rule gives the gradient that plain jax gives for the formula of the rule."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import triax
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
    W,
    batch,
    half_squares,
    make_policy,
    make_q,
    make_real_q,
    make_v,
    normal,
    pick,
    real_batch,
    softmax,
    weight_of,
)
from triax.losses.value_losses import mse
from triax.proba_dists import NormalDist
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

W1, W2, W3, WPI = (normal(STATE, ACTIONS) for _ in range(4))
R1, R2, R3, RPI = normal(STATE + 2), normal(STATE + 2), normal(STATE + 2), normal(STATE, 2)
PI = softmax(S_NEXT @ WPI)
ARGS = {"optimizer": optax.sgd(0.5), "loss_function": mse}


def check(rule, target, gradient_of, w, transitions):
    """The step of an SGD update is along the gradient, and the rule reports its size and the errors."""
    trained = rule.v if isinstance(rule, SimpleTD) else rule.q
    gradient = jax.jit(jax.grad(lambda w: half_squares(target, gradient_of(w))))(w)
    metrics, td_error = rule.update(transitions, return_td_error=True)
    np.testing.assert_allclose(weight_of(trained), w - 0.5 * gradient, rtol=2e-4, atol=2e-6)
    name = type(rule).__name__
    np.testing.assert_allclose(metrics[f"{name}/grads_norm"], np.linalg.norm(gradient), rtol=2e-4)
    np.testing.assert_allclose(metrics[f"{name}/grads_max"], np.max(np.abs(gradient)), rtol=2e-4)
    np.testing.assert_allclose(td_error, target - gradient_of(w), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(metrics[f"{name}/td_error"], np.mean(W * td_error), rtol=1e-4, atol=1e-6)


def test_simple_td():
    w, w_targ = normal(STATE), normal(STATE)
    target = RN + IN * (S_NEXT @ w_targ)
    rule = SimpleTD(make_v(w), make_v(w_targ), **ARGS)
    check(rule, target, lambda w: S @ w, w, batch())


# ------------------------------------------------------------------ Discrete actions

SOFT = 0.3
DISCRETE_TARGETS = {
    "Sarsa": RN + IN * pick(S_NEXT @ W2, A_NEXT),
    "ExpectedSarsa": RN + IN * np.sum(PI * (S_NEXT @ W2), axis=1),
    "QLearning": RN + IN * (S_NEXT @ W2).max(axis=1),
    # F55: the trained function picks, the target function evaluates
    "DoubleQLearning": RN + IN * pick(S_NEXT @ W2, (S_NEXT @ W1).argmax(axis=1)),
    "SoftQLearning": RN + IN * SOFT * np.log(np.exp(S_NEXT @ W2 / SOFT).sum(axis=1)),
    "ClippedDoubleQLearning": RN
    + IN * np.min([pick(S_NEXT @ w, (S_NEXT @ other).argmax(axis=1)) for w in (W2, W3) for other in (W2, W3)], axis=0),
    # F60: the expectation over a sampled action, of the smaller value
    "SoftClippedDoubleQLearning": RN + IN * np.sum(PI * np.minimum(S_NEXT @ W2, S_NEXT @ W3), axis=1),
}


def discrete_rule(name, make, **options):
    """The rule with functions made by ``make(w)``."""
    q, q_targ, other = make(W1), make(W2), make(W3)
    pi = make_policy(WPI)
    return {
        "Sarsa": lambda: Sarsa(q, q_targ, **options),
        "ExpectedSarsa": lambda: ExpectedSarsa(q, pi, q_targ, **options),
        "QLearning": lambda: QLearning(q, q_targ=q_targ, **options),
        "DoubleQLearning": lambda: DoubleQLearning(q, q_targ=q_targ, **options),
        "SoftQLearning": lambda: SoftQLearning(q, q_targ, temperature=SOFT, **options),
        "ClippedDoubleQLearning": lambda: ClippedDoubleQLearning(q, q_targ_list=[q_targ, other], **options),
        "SoftClippedDoubleQLearning": lambda: SoftClippedDoubleQLearning(q, [pi], [q_targ, other], **options),
    }[name]()


@pytest.mark.parametrize("name", DISCRETE_TARGETS)
def test_rules_with_discrete_actions(name):
    check(discrete_rule(name, make_q, **ARGS), DISCRETE_TARGETS[name], lambda w: pick(S @ w, A), W1, batch())


class Bilinear(Linear):
    """``S @ w`` at the action: the type-1 form of ``OfState``."""

    def __call__(self, S, A, is_training):
        return jnp.sum((S @ self.w[...]) * A, axis=-1)


def make_type1(w):
    return triax.Q(Bilinear(w), DISCRETE, random_seed=0)


@pytest.mark.parametrize("name", DISCRETE_TARGETS)
def test_type_1_and_type_2_of_the_same_function_learn_alike(name):
    rule = discrete_rule(name, make_type1, **ARGS)
    check(rule, DISCRETE_TARGETS[name], lambda w: pick(S @ w, A), W1, batch())


def test_an_expectation_over_actions_is_one_of_values_not_of_inputs():  # F53
    """For a network that is not linear in the action, a mean action is no mean value."""
    w = normal(STATE + ACTIONS)

    class Squared(Linear):
        def __call__(self, S, A, is_training):
            return jnp.square(jnp.concatenate([S, A], axis=-1) @ self.w[...])

    q = triax.Q(Squared(w), DISCRETE, random_seed=0)
    rule = ExpectedSarsa(q, make_policy(WPI), loss_function=mse)
    values = np.stack([(S_NEXT @ w[:STATE] + w[STATE + a]) ** 2 for a in range(ACTIONS)], axis=1)
    predicted = (S @ w[:STATE] + w[STATE + A]) ** 2
    expected = RN + IN * np.sum(PI * values, axis=1) - predicted
    np.testing.assert_allclose(rule.td_error(batch()), expected, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------ real actions


def features(states, actions):
    return np.concatenate([states, np.tanh(actions)], axis=-1)


NEXT_FEATURES = features(S_NEXT, S_NEXT @ RPI)
REAL_TARGETS = {
    "Sarsa": RN + IN * (features(S_NEXT, REAL_A[::-1]) @ R2),
    "QLearning": RN + IN * (NEXT_FEATURES @ R2),
    "DoubleQLearning": RN + IN * (NEXT_FEATURES @ R2),
    "ClippedDoubleQLearning": RN + IN * np.minimum(NEXT_FEATURES @ R2, NEXT_FEATURES @ R3),
    "SoftClippedDoubleQLearning": RN + IN * np.minimum(NEXT_FEATURES @ R2, NEXT_FEATURES @ R3),
}


def nearly_deterministic(mu):
    return {"mu": mu, "logvar": jnp.full_like(mu, -40.0)}


def real_policy():
    """Its sample is its mode."""
    dist = NormalDist(REALS.action_space, clip_logvar=(-50.0, 20.0))
    return triax.Policy(Tree(OfState(RPI), nearly_deterministic), REALS, proba_dist=dist, random_seed=0)


def real_rule(name, **options):
    q, q_targ, other = make_real_q(R1), make_real_q(R2), make_real_q(R3)
    return {
        "Sarsa": lambda: Sarsa(q, q_targ, **options),
        "QLearning": lambda: QLearning(q, real_policy(), q_targ, **options),
        "DoubleQLearning": lambda: DoubleQLearning(q, real_policy(), q_targ, **options),
        "ClippedDoubleQLearning": lambda: ClippedDoubleQLearning(q, [real_policy()], [q_targ, other], **options),
        "SoftClippedDoubleQLearning": lambda: SoftClippedDoubleQLearning(
            q, [real_policy()], [q_targ, other], **options
        ),
    }[name]()


@pytest.mark.parametrize("name", REAL_TARGETS)
def test_rules_with_real_actions(name):
    transitions = real_batch(A_next=REAL_A[::-1], logP_next=np.zeros(B)) if name == "Sarsa" else real_batch()
    rule = real_rule(name, **ARGS)
    check(rule, REAL_TARGETS[name], lambda w: features(S, REAL_A) @ w, R1, transitions)


def test_the_soft_clipped_rule_samples_its_actions():
    """The spread of targets over draws is that of the critic over the policy's samples."""
    pi = triax.Policy(Tree(OfState(RPI), lambda mu: {"mu": mu, "logvar": jnp.zeros_like(mu)}), REALS, random_seed=0)
    rule = SoftClippedDoubleQLearning(make_real_q(R1), [pi], [make_real_q(R2), make_real_q(R2)], **ARGS)
    transitions = real_batch(In=np.full(B, 0.9))
    drawn = np.stack([rule.plain_td_error(transitions) for _ in range(300)])
    rng = np.random.default_rng(0)
    actions = S_NEXT @ RPI + rng.normal(size=(5_000, B, 2))
    values = np.stack([features(S_NEXT, a) @ R2 for a in actions])
    predicted = features(S, REAL_A) @ R1
    np.testing.assert_allclose(drawn.mean(0), RN + 0.9 * values.mean(0) - predicted, atol=0.25)
    np.testing.assert_allclose(drawn.std(0), 0.9 * values.std(0), rtol=0.2)
