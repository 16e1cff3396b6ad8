"""An update may move a target network in its compiled call: as two calls do, and all or nothing."""

import jax
import numpy as np
import optax
import pytest

import triax
from compilations import counted_compilations
from linear_functions import ACTIONS, DISCRETE, STATE, OfState, batch, make_policy, make_q, make_v, normal, weight_of
from triax.core.errors import NonFiniteError
from triax.policy_objectives import VanillaPG
from triax.td_learning import ClippedDoubleQLearning, QLearning, SimpleTD

W1, W2 = normal(STATE, ACTIONS), normal(STATE, ACTIONS, seed=1)


def make_rule():
    q, q_targ = make_q(W1), make_q(W2)
    return q, q_targ, QLearning(q, q_targ=q_targ, optimizer=optax.adam(0.1))


def assert_same(found, expected):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_an_update_with_a_soft_update_leaves_what_two_calls_leave(tau):
    q, q_targ, rule = make_rule()
    q2, q_targ2, rule2 = make_rule()
    for seed in range(4):
        rule.update(batch(Rn=normal(5, seed=seed)), soft_update=(q_targ, tau))
        rule2.update(batch(Rn=normal(5, seed=seed)))
        q_targ2.soft_update(q2, tau)
    assert_same((q.params, q_targ.params), (q2.params, q_targ2.params))
    assert not np.array_equal(weight_of(q), W1)


def test_a_target_that_was_read_keeps_what_was_read():
    _, q_targ, rule = make_rule()
    before = q_targ.params
    for seed in range(3):
        rule.update(batch(Rn=normal(5, seed=seed)), soft_update=(q_targ, 0.5))
    np.testing.assert_array_equal(jax.tree.leaves(before)[0], W2)
    assert not np.array_equal(weight_of(q_targ), W2)


def test_a_policy_and_a_state_value_move_their_targets_too():
    pi = make_policy(normal(STATE, ACTIONS))
    pi_targ, start = pi.copy(), weight_of(pi)
    VanillaPG(pi, optimizer=optax.sgd(0.5)).update(batch(), np.ones(5, np.float32), soft_update=(pi_targ, 0.25))
    np.testing.assert_allclose(weight_of(pi_targ), 0.75 * start + 0.25 * weight_of(pi), rtol=1e-6)

    v = make_v(normal(STATE, seed=1))
    v_targ, start = v.copy(), weight_of(v)
    SimpleTD(v, v_targ, optimizer=optax.sgd(0.5)).update(batch(), soft_update=(v_targ, 0.25))
    np.testing.assert_allclose(weight_of(v_targ), 0.75 * start + 0.25 * weight_of(v), rtol=1e-6)


def test_one_of_several_targets_can_be_moved():
    q, targets = make_q(W1), [make_q(W2), make_q(W2 + 1)]
    rule = ClippedDoubleQLearning(q, q_targ_list=targets, optimizer=optax.sgd(0.5))
    rule.update(batch(), soft_update=(targets[0], 0.5))
    np.testing.assert_allclose(weight_of(targets[0]), (W2 + weight_of(q)) / 2, rtol=1e-6)
    np.testing.assert_array_equal(weight_of(targets[1]), W2 + 1)


def test_a_step_that_is_left_out_moves_the_target_towards_weights_that_stayed():
    q, q_targ, rule = make_rule()
    S = jax.numpy.full((5, STATE), np.nan)  # on the device values are not looked at
    rule.update(batch(S=S), soft_update=(q_targ, 0.5))
    with pytest.raises(NonFiniteError):
        rule.raise_if_not_finite()
    np.testing.assert_array_equal(weight_of(q), W1)
    np.testing.assert_allclose(weight_of(q_targ), (W1 + W2) / 2, rtol=1e-6)


def test_other_values_of_tau_compile_nothing():
    _, q_targ, rule = make_rule()
    rule.update(batch(), soft_update=(q_targ, 0.5))
    with counted_compilations() as count:
        rule.update(batch(Rn=normal(5, seed=1)), soft_update=(q_targ, 0.25))
        rule.update(batch(Rn=normal(5, seed=2)), soft_update=(q_targ, np.float32(1)))
    assert count.compilations == 0


@pytest.mark.parametrize(
    ("soft_update", "error", "message"),
    [
        (lambda q, t: t, TypeError, r"QLearning.update: soft_update must be \(target network, tau\); got Q\."),
        (lambda q, t: (t,), TypeError, "soft_update must be .*got a tuple of"),
        (lambda q, t: (0.5, t), TypeError, "soft_update must be .*got a tuple of"),
        (lambda q, t: (q, 0.5), TypeError, "got the function in training itself"),
        (lambda q, t: (t, 1.5), ValueError, r"tau must be in \[0, 1\]; got 1.5"),
        (lambda q, t: (make_v(normal(STATE)), 0.5), TypeError, "V.soft_update: other must be a V; got Q"),
        (lambda q, t: (wide_q(), 0.5), TypeError, "the weights of other do not fit"),
    ],
)
def test_a_soft_update_that_cannot_be_is_refused_and_nothing_is_trained(soft_update, error, message):
    q, q_targ, rule = make_rule()
    with pytest.raises(error, match=message):
        rule.update(batch(), soft_update=soft_update(q, q_targ))
    np.testing.assert_array_equal(weight_of(q), W1)
    np.testing.assert_array_equal(weight_of(q_targ), W2)
    rule.update(batch())
    assert not np.array_equal(weight_of(q), W1)


def wide_q():
    class Wide(OfState):
        def __call__(self, S, is_training):
            return super().__call__(S, is_training)[:, :ACTIONS]

    return triax.Q(Wide(normal(STATE, ACTIONS + 1)), DISCRETE, random_seed=0)
