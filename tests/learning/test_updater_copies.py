"""Copies of rules train on their own; pickle, steps that fail, and what a rule prints."""

import copy
import pickle
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import triax
from compilations import counted_compilations
from linear_functions import ACTIONS, STATE, S, batch, make_policy, make_q, make_v, normal, weight_of
from triax.core.errors import LostWeightsError
from triax.losses.value_losses import mse
from triax.policy_objectives import VanillaPG
from triax.regularizers import EntropyRegularizer
from triax.td_learning import ClippedDoubleQLearning, ExpectedSarsa, QLearning, SimpleTD, SoftQLearning

W = normal(STATE, ACTIONS)


def make_rule(**options):
    return QLearning(make_q(W), q_targ=make_q(W), **{"optimizer": optax.adam(0.1), **options})


def everything(rule):
    trained = rule._trained
    return jax.tree.map(np.array, (trained._params, trained._function_state, rule._optimizer_state.value))


def assert_same(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)


# ------------------------------------------------------------------ copies


def test_a_shallow_copy_trains_the_same_function_with_an_optimizer_state_of_its_own():
    rule = make_rule()
    rule.update(batch())
    twin = copy.copy(rule)
    state = jax.tree.map(np.array, twin.optimizer_state)
    assert twin.q is rule.q
    rule.update(batch())  # donates the state of rule alone
    assert_same(jax.tree.map(np.array, twin.optimizer_state), state)
    twin.update(batch())
    rule.update(batch())
    assert not np.array_equal(rule.rng, twin.rng)


def test_a_deep_copy_trains_a_copy_of_the_function_as_the_original_would_have():
    rule = make_rule()
    rule.update(batch())
    twin = copy.deepcopy(rule)
    before = everything(twin)
    assert twin.q is not rule.q
    assert twin.q_targ is not rule.q_targ
    rule.update(batch())
    assert_same(everything(twin), before)
    twin.update(batch())
    for found, expected in zip(*map(jax.tree.leaves, (everything(twin), everything(rule))), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_deep_copy_keeps_which_functions_are_one():
    q = make_q(W)
    pi = triax.EpsilonGreedy(q)
    twin = copy.deepcopy(ExpectedSarsa(q, pi))
    assert twin.q is not q
    assert twin.q is twin.q_targ is twin.pi_targ.q
    regularized = VanillaPG(policy := make_policy(W), regularizer=EntropyRegularizer(policy))
    twin = copy.deepcopy(regularized)
    assert twin.pi is twin.regularizer.f is not policy
    clipped = copy.deepcopy(ClippedDoubleQLearning(q, q_targ_list=[q, make_q(W)]))
    assert clipped.q_targ_list[0] is clipped.q


def test_a_copy_takes_another_loss_without_changing_the_original():
    rule = make_rule(loss_function=mse)
    rule.update(batch())
    twin = copy.copy(rule)
    twin.loss_function = lambda y_true, y_pred, w=None: jnp.float32(7.0) + 0 * jnp.sum(y_pred)
    assert float(twin.grads_and_metrics(batch())[2]["QLearning/loss"]) == 7
    assert float(rule.grads_and_metrics(batch())[2]["QLearning/loss"]) != 7


# ------------------------------------------------------------------ pickle


@pytest.mark.parametrize(
    ("made", "advice"),
    [
        (lambda: make_q(W), r"Q cannot be pickled.*params and function_state.*triax.runs"),
        (lambda: triax.EpsilonGreedy(make_q(W)), r"EpsilonGreedy cannot be pickled.*params"),
        (make_rule, r"QLearning cannot be pickled.*optimizer_state.*triax.runs"),
        (lambda: {"rule": make_rule()}, "QLearning cannot be pickled"),
    ],
)
def test_pickle_says_what_to_save_instead(made, advice):
    with pytest.raises(TypeError, match=advice):
        pickle.dumps(made())


# ------------------------------------------------------------------ steps that fail


class Failing:
    """A squared error that fails while the step runs, on demand."""

    def __init__(self):
        self.fails = False

    def __call__(self, y_true, y_pred, w=None):
        def callback(x):
            if self.fails:
                raise MemoryError("on purpose")
            return x

        zero = jax.ShapeDtypeStruct((), jnp.float32)
        checked = jax.pure_callback(
            callback, zero, jax.lax.stop_gradient(jnp.sum(y_pred)) * 0, vmap_method="sequential"
        )
        return mse(y_true, y_pred, w) + checked


def test_a_step_that_fails_while_it_runs_says_that_weights_are_lost_and_how_to_go_on():
    loss = Failing()
    rule = make_rule(loss_function=loss)
    rule.update(batch())
    saved = everything(rule)
    loss.fails = True
    with pytest.raises(LostWeightsError, match=r"QLearning: the weights of Q and the optimizer state are lost.*Assign"):
        rule.update(batch())
        rule.raise_if_not_finite()  # where a device runs behind, this call tells
    loss.fails = False
    with pytest.raises(LostWeightsError, match="QLearning: the weights of Q"):
        rule.update(batch())
    with pytest.raises(LostWeightsError, match="QLearning: the weights of Q"):
        rule.td_error(batch())
    other = rule.q_targ
    for use in (
        lambda: rule.q(np.zeros(STATE, np.float32)),
        lambda: rule.q.copy(),
        lambda: rule.q.params,
        lambda: rule.q.function_state,
        lambda: rule.q.soft_update(other, 0.5),
        lambda: other.soft_update(rule.q, 0.5),
        lambda: rule.q.initial_carry(),
        lambda: triax.EpsilonGreedy(rule.q).params,
    ):
        with pytest.raises(LostWeightsError, match=r": the weights are lost.*Assign params"):
            use()
    for use in (lambda: rule.optimizer_state, lambda: copy.copy(rule)):
        with pytest.raises(LostWeightsError, match=r"QLearning: the optimizer state is lost.*Assign optimizer_state"):
            use()
    with pytest.raises(LostWeightsError, match=r"QLearning: the weights of another function that the rule reads"):
        QLearning(other.copy(), q_targ=rule.q).update(batch())
    repr(rule), repr(rule.q)
    rule.q.params, rule.q.function_state, rule.optimizer_state = saved
    assert_same(everything(rule), saved)
    rule.update(batch())
    rule.raise_if_not_finite()
    assert not np.array_equal(weight_of(rule.q), saved[0]["w"])


def test_threads_may_train_one_rule_and_act_meanwhile():
    rule, steps = make_rule(), 40
    rule.update(batch())
    v = make_v(normal(STATE))
    td = SimpleTD(v, v_targ=v.copy())
    errors = []

    def run(call):
        try:
            for _ in range(steps):
                call()
        except Exception as error:
            errors.append(error)

    calls = (
        lambda: rule.update(batch()),
        lambda: rule.update(batch()),
        lambda: rule.q(S[0]),
        lambda: td.update(batch()),
        lambda: td.v(S[0]),
        lambda: (rule.q.copy(), rule.td_error(batch())),
    )
    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert rule.optimizer_state[0].count == 2 * steps + 1


def test_an_interrupt_within_a_step_stays_one_and_tells_of_the_loss():
    rule = make_rule()
    rule.update(batch())

    def interrupt(*weights):
        raise KeyboardInterrupt

    vars(rule.q)["put_weights"] = interrupt  # hides the method
    with pytest.raises(KeyboardInterrupt) as caught:
        rule.update(batch())
    assert any("weights of Q and the optimizer state are lost" in note for note in caught.value.__notes__)


def test_an_error_before_the_step_holds_the_weights_is_passed_on_as_it_is():
    def no_loss(y_true, y_pred, w=None):
        raise ZeroDivisionError

    rule = make_rule()
    before = everything(rule)
    rule.loss_function = no_loss
    with pytest.raises(ZeroDivisionError):
        rule.update(batch())
    assert_same(everything(rule), before)


# ------------------------------------------------------------------ weak types


def test_assigning_weakly_typed_weights_compiles_nothing():
    rule = make_rule(optimizer=optax.sgd(0.1))
    s = np.zeros(STATE, np.float32)
    weak = jnp.full((STATE, ACTIONS), 0.5)
    assert weak.weak_type
    rule.q.params = {"w": np.array(weak)}
    rule.apply_grads({"w": np.array(weak)}, {})
    rule.update(batch()), rule.q(s)
    with counted_compilations() as count:
        rule.q.params = {"w": weak}
        rule.q(s)
        rule.update(batch())
        rule.apply_grads({"w": weak}, {})
        rule.update(batch())
    assert count.compilations == 0


# ------------------------------------------------------------------ printing


def test_a_rule_prints_what_it_trains_and_how_in_one_line():
    rule = make_rule()
    rule.update(batch())
    assert repr(rule) == "QLearning(Q with 12 parameters, optimizer=ScaleByAdam, steps=1, loss_function=huber)"


@pytest.mark.parametrize("name", ["temprature", "weight_clp", "params"])
def test_a_mistyped_attribute_of_a_rule_is_refused(name):
    rule = SoftQLearning(make_q(W))
    with pytest.raises(AttributeError, match=rf"SoftQLearning has no attribute '{name}'.*temperature.*weight_clip"):
        setattr(rule, name, 1)
