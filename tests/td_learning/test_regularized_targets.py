"""A regularizer in the target: of the state that is bootstrapped from, times its factor, in original units."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import triax
from compilations import counted_compilations
from linear_functions import (
    ACTIONS,
    ATOMS,
    BINS,
    IN,
    RN,
    S_NEXT,
    STATE,
    A,
    B,
    S,
    batch,
    entropy_of,
    make_binned_q,
    make_policy,
    make_q,
    make_quantile_q,
    make_v,
    normal,
    pick,
    softmax,
)
from triax.losses.value_losses import mse
from triax.losses.value_transforms import LogTransform
from triax.regularizers import EntropyRegularizer, KLDivRegularizer, NStepEntropyRegularizer
from triax.reward_tracing import NStep
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

W1, W2, WPI = (normal(STATE, ACTIONS) for _ in range(3))
ENTROPY = entropy_of(S_NEXT @ WPI)
BETA = 0.3


def rules(make):
    """Each rule with the given further arguments; both targets of the clipped ones are alike."""
    q, q_targ, pi = make_q(W1), make_q(W2), make_policy(WPI)
    return {
        "Sarsa": lambda **o: Sarsa(q, q_targ, **o),
        "ExpectedSarsa": lambda **o: ExpectedSarsa(q, pi, q_targ, **o),
        "QLearning": lambda **o: QLearning(q, q_targ=q_targ, **o),
        "DoubleQLearning": lambda **o: DoubleQLearning(q, q_targ=q_targ, **o),
        "SoftQLearning": lambda **o: SoftQLearning(q, q_targ, **o),
        "ClippedDoubleQLearning": lambda **o: ClippedDoubleQLearning(q, q_targ_list=[q_targ, q_targ], **o),
        "SoftClippedDoubleQLearning": lambda **o: SoftClippedDoubleQLearning(q, [pi], [q_targ, q_targ], **o),
        "SimpleTD": lambda **o: SimpleTD(make_v(W1[:, 0]), make_v(W2[:, 0]), **o),
    }[make]


@pytest.mark.parametrize(
    "name",
    [
        "Sarsa",
        "ExpectedSarsa",
        "QLearning",
        "DoubleQLearning",
        "SoftQLearning",
        "ClippedDoubleQLearning",
        "SoftClippedDoubleQLearning",
        "SimpleTD",
    ],
)
def test_the_entropy_of_the_bootstrapped_state_times_its_factor_is_added(name):  # F56
    regularizer = EntropyRegularizer(make_policy(WPI), beta=BETA)
    rule = rules(name)(loss_function=mse, policy_regularizer=regularizer, optimizer=optax.sgd(0.0))
    metrics, with_entropy = rule.update(batch(), return_td_error=True)
    regularizer.beta = 0.0
    _, without = rule.update(batch(), return_td_error=True)
    gain = with_entropy - without
    np.testing.assert_allclose(gain, IN * BETA * ENTROPY, rtol=1e-3, atol=1e-5)
    assert gain[1] == 0  # a terminal step
    np.testing.assert_allclose(metrics[f"{name}/EntropyRegularizer/entropy"], ENTROPY.mean(), rtol=1e-4)
    np.testing.assert_allclose(metrics[f"{name}/EntropyRegularizer/beta"], BETA, rtol=1e-6)


def test_a_divergence_from_a_prior_is_subtracted():
    priors = {"logits": np.array([[0.0, 1.0, 0.0, -1.0]], np.float32)}
    regularizer = KLDivRegularizer(make_policy(WPI), BETA, priors)
    rule = QLearning(make_q(W1), q_targ=make_q(W2), loss_function=mse, policy_regularizer=regularizer)
    p, prior = softmax(S_NEXT @ WPI), softmax(priors["logits"])
    divergence = np.sum(p * np.log(p / prior), axis=1)
    metrics, td_error = rule.update(batch(), return_td_error=True)
    gain = td_error - (RN + IN * (S_NEXT @ W2).max(axis=1) - pick(S @ W1, A))
    np.testing.assert_allclose(gain, -IN * BETA * divergence, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(metrics["QLearning/KLDivRegularizer/kl_div"], divergence.mean(), rtol=1e-4)


def test_the_term_is_in_original_units():  # F56
    transform = LogTransform(2.0)
    q, q_targ = make_q(W1, value_transform=transform), make_q(W2, value_transform=transform)
    regularizer = EntropyRegularizer(make_policy(WPI), beta=BETA)
    rule = QLearning(q, q_targ=q_targ, loss_function=mse, policy_regularizer=regularizer)
    following = np.asarray(transform.inverse_func(S_NEXT @ W2)).max(axis=1)
    G = np.asarray(transform.transform_func(RN + IN * (following + BETA * ENTROPY)))
    np.testing.assert_allclose(rule.plain_td_error(batch()), G - pick(S @ W1, A), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [make_binned_q, make_quantile_q])
def test_distributions_are_shifted_by_the_term(make):  # 9.3
    w = normal(STATE, ACTIONS * BINS) / 4
    regularizer = EntropyRegularizer(make_policy(WPI), beta=0.2)
    inside = jax.tree.map(jnp.asarray, batch(Rn=np.zeros(B)))  # nothing is cut off at the ends of the range

    def target(rule):
        G = rule.target_func(rule.target_params, rule.target_function_state, rule.rng, inside)
        return softmax(np.asarray(G["logits"])) @ ATOMS if make is make_binned_q else np.mean(G["values"], axis=-1)

    q = make(w)
    gain = target(QLearning(q, policy_regularizer=regularizer)) - target(QLearning(q))
    np.testing.assert_allclose(gain, IN * 0.2 * ENTROPY, atol=1e-3)


def test_numbers_of_the_regularizer_take_effect_and_compile_nothing():  # F52
    regularizer = EntropyRegularizer(make_policy(WPI), beta=BETA)
    rule = QLearning(make_q(W1), q_targ=make_q(W2), loss_function=mse, policy_regularizer=regularizer)
    at_first = np.array(rule.plain_td_error(batch()))
    with counted_compilations() as count:
        regularizer.beta = 0.0
        without = np.array(rule.plain_td_error(batch()))
    np.testing.assert_allclose(at_first - without, IN * BETA * ENTROPY, rtol=1e-3, atol=1e-5)
    assert count.compilations == 0


def test_the_weights_of_the_regularizer_are_those_of_its_own_function_now():
    pi = make_policy(WPI)
    rule = QLearning(
        make_q(W1), q_targ=make_q(W2), loss_function=mse, policy_regularizer=EntropyRegularizer(pi, beta=BETA)
    )
    before = np.array(rule.plain_td_error(batch()))
    pi.params = jax.tree.map(jnp.zeros_like, pi.params)
    change = np.array(rule.plain_td_error(batch())) - before
    np.testing.assert_allclose(change, IN * BETA * (np.log(ACTIONS) - ENTROPY), rtol=1e-3, atol=1e-5)


# ------------------------------------------------------------------ n steps


def episodes(n):
    """Two episodes, one terminated and one truncated, traced with n steps."""
    tracer, rng, rows = NStep(n=n, gamma=0.9, record_extra_info=True), np.random.default_rng(1), []
    for length, terminates in ((4, True), (3, False)):
        states = rng.normal(size=(length + 1, STATE)).astype(np.float32)
        for t in range(length):
            last = t == length - 1
            tracer.add(
                states[t],
                t % ACTIONS,
                0.5 * t,
                last and terminates,
                truncated=last and not terminates,
                s_next=states[t + 1],
            )
            while tracer:
                rows.append(tracer.pop())
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *rows)


def test_the_entropy_n_steps_ahead_counts_only_where_the_target_bootstraps():  # F57
    """With the offset of the tracer alone: SAC's target for n-step returns."""
    n = 2
    regularizer = NStepEntropyRegularizer(make_policy(WPI), [n], beta=BETA, gamma=0.9)
    rule = QLearning(make_q(W1), q_targ=make_q(W2), loss_function=mse, policy_regularizer=regularizer)
    plain = QLearning(make_q(W1), q_targ=make_q(W2), loss_function=mse)
    made = episodes(n)
    gain = rule.plain_td_error(made) - plain.plain_td_error(made)
    whole = np.isclose(made.In, 0.9**n)  # neither ended nor cut short within n steps
    assert 0 < whole.sum() < len(whole)
    expected = np.where(whole, 0.9**n * BETA * entropy_of(made.S_next @ WPI), 0.0)
    np.testing.assert_allclose(gain, expected, rtol=1e-3, atol=1e-5)


def test_n_step_entropy_needs_recorded_steps():
    regularizer = NStepEntropyRegularizer(make_policy(WPI), [1])
    rule = QLearning(make_q(W1), policy_regularizer=regularizer)
    with pytest.raises(TypeError, match=r"QLearning: batch\.extra_info is missing.*record_extra_info=True"):
        rule.update(batch())


def test_the_regularized_policy_may_be_trained_between_updates():
    pi = make_policy(WPI)
    rule = QLearning(make_q(W1), policy_regularizer=EntropyRegularizer(pi), optimizer=optax.sgd(0.1))
    objective = triax.policy_objectives.VanillaPG(pi, optax.sgd(0.1))
    for _ in range(2):
        rule.update(batch())
        objective.update(batch(), np.ones(B))
    rule.raise_if_not_finite()
