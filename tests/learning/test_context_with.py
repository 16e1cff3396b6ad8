"""A context with given weights does what the functions would with these weights in them."""

import jax
import numpy as np
import pytest

import triax
from linear_functions import (
    ACTIONS,
    REALS,
    STATE,
    OfPair,
    batch,
    make_policy,
    make_q,
    make_real_policy,
    normal,
    real_batch,
)
from triax.policy_objectives import DeterministicPG
from triax.regularizers import EntropyRegularizer
from triax.td_learning import ClippedDoubleQLearning, ExpectedSarsa, QLearning, SoftQLearning

W, OTHER, THIRD = (normal(STATE, ACTIONS, seed=seed) for seed in (1, 2, 3))
PAIR, OTHER_PAIR = (normal(STATE + 2, seed=seed) for seed in (4, 5))


def weights_of(f):
    return f.params, f.function_state


def loss_of(rule, context, transitions):
    encoded = rule._encode(transitions)
    decoded = jax.tree.map(lambda x: x.decode(), encoded, is_leaf=lambda x: hasattr(x, "decode"))
    step = jax.jit(rule.learner.gradients)(*weights_of(rule._trained), jax.random.PRNGKey(0), context, decoded)
    return step.output.metrics[f"{type(rule).__name__}/loss"], step.grads


def clipped(*targets):
    q = make_q(W)
    return ClippedDoubleQLearning(q, q_targ_list=[make_q(w) for w in targets])


def soft(w, temperature):
    q = make_q(W)
    return SoftQLearning(q, q_targ=make_q(w), temperature=temperature)


def expected(w, epsilon):
    q, q_targ = make_q(W), make_q(w)
    return ExpectedSarsa(q, triax.EpsilonGreedy(q_targ, epsilon=epsilon), q_targ=q_targ)


def regularized(w, beta):
    pi = make_policy(w)
    return QLearning(make_q(W), q_targ=make_q(W), policy_regularizer=EntropyRegularizer(pi, beta))


def deterministic(w):
    pi = make_real_policy(normal(STATE, 2, seed=6))
    q = triax.Q(OfPair(w), REALS, action_preprocessor=pi.proba_dist.preprocess_variate, random_seed=0)
    return DeterministicPG(pi, q)


CASES = {
    "a target": (
        lambda: QLearning(make_q(W), q_targ=make_q(W)),
        lambda: QLearning(make_q(W), q_targ=make_q(OTHER)),
        lambda rule: {"q_targ": weights_of(rule.q_targ)},
    ),
    "a list of targets": (
        lambda: clipped(W, W),
        lambda: clipped(OTHER, THIRD),
        lambda rule: {"q_targ": [weights_of(q) for q in rule.q_targ_list]},
    ),
    "a number": (
        lambda: soft(W, 1.0),
        lambda: soft(OTHER, 0.3),
        lambda rule: {"q_targ": weights_of(rule.q_targ), "temperature": np.float32(0.3)},
    ),
    "a policy made from a q-function": (
        lambda: expected(W, 0.5),
        lambda: expected(OTHER, 0.1),
        lambda rule: {"q_targ": weights_of(rule.q_targ), "pi_targ": (np.float32(0.1), weights_of(rule.q_targ))},
    ),
    "a regularizer": (
        lambda: regularized(W, 0.1),
        lambda: regularized(OTHER, 0.7),
        lambda rule: {"reg": weights_of(rule.policy_regularizer.f), "reg_hparams": {"beta": np.float32(0.7)}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_td_rule_learns_as_if_its_functions_held_the_weights(case):
    make, make_wanted, parts = CASES[case]
    rule, wanted = make(), make_wanted()
    loss, grads = loss_of(rule, rule.context_with(**parts(wanted)), batch())
    expected_loss, expected_grads = loss_of(wanted, wanted.context(), batch())
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), grads, expected_grads)
    assert abs(loss_of(rule, rule.context(), batch())[0] - expected_loss) > 1e-3  # what is held stays


def test_a_policy_objective_climbs_the_critic_it_is_given():
    rule, wanted = deterministic(PAIR), deterministic(OTHER_PAIR)
    transitions = (real_batch(), None)
    loss, _ = loss_of(rule, rule.context_with(q=[weights_of(wanted.q_targ)]), transitions)
    expected_loss, _ = loss_of(wanted, wanted.context(), transitions)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)


def test_says_which_parts_there_are_and_what_does_not_fit():
    rule = QLearning(make_q(W), q_targ=make_q(OTHER))
    with pytest.raises(TypeError, match=r"QLearning.context_with: must name parts among \['q_targ'\]; got 'pi_targ'"):
        rule.context_with(pi_targ=weights_of(rule.q))
    with pytest.raises(TypeError, match="got 'q'"):  # in training
        rule.context_with(q=weights_of(rule.q))
    with pytest.raises(TypeError, match="q_targ does not fit"):
        rule.context_with(q_targ=({"w": normal(STATE + 1, ACTIONS, seed=7)}, {}))
