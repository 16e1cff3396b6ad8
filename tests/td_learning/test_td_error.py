"""TD errors: minus the batch size times the gradient of the loss, without weights, before the step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from compilations import counted_compilations
from linear_functions import (
    ACTIONS,
    IN,
    RN,
    S_NEXT,
    STATE,
    A,
    B,
    S,
    W,
    batch,
    make_policy,
    make_q,
    make_v,
    normal,
    pick,
    weight_of,
)
from triax.losses.value_losses import huber, logloss_sign, mse
from triax.policy_objectives import PPOClip, VanillaPG
from triax.td_learning import QLearning, SimpleTD, SoftQLearning

W1, W2 = normal(STATE, ACTIONS), normal(STATE, ACTIONS)
PLAIN = RN + IN * (S_NEXT @ W2).max(axis=1) - pick(S @ W1, A)


def make_rule(loss_function=None, optimizer=None):
    return QLearning(make_q(W1), q_targ=make_q(W2), optimizer=optimizer, loss_function=loss_function)


def test_the_plain_error_is_target_minus_prediction_whatever_the_loss():  # F69
    for loss_function in (None, mse):
        np.testing.assert_allclose(make_rule(loss_function).plain_td_error(batch()), PLAIN, rtol=1e-4, atol=1e-5)


def test_under_huber_the_error_is_clipped():  # F69
    assert np.abs(PLAIN).max() > 1
    np.testing.assert_allclose(make_rule().td_error(batch()), np.clip(PLAIN, -1, 1), rtol=1e-4, atol=1e-5)


def test_under_half_squares_the_error_is_plain_and_positive_where_the_prediction_is_too_low():
    np.testing.assert_allclose(make_rule(mse).td_error(batch()), PLAIN, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss_function", [huber, mse, lambda y_true, y_pred, w=None: jnp.mean((y_true - y_pred) ** 4)])
def test_the_error_is_minus_batch_size_times_the_gradient_of_the_loss(loss_function):
    target, predicted = PLAIN + pick(S @ W1, A), pick(S @ W1, A)
    expected = -B * jax.grad(lambda y: loss_function(jnp.asarray(target), y))(jnp.asarray(predicted))
    np.testing.assert_allclose(make_rule(loss_function).td_error(batch()), expected, rtol=1e-3, atol=1e-4)


def test_the_error_is_not_weighted_but_its_metric_is():
    rule = make_rule(mse)
    metrics, td_error = rule.update(batch(), return_td_error=True)
    np.testing.assert_allclose(td_error, PLAIN, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(metrics["QLearning/td_error"], np.mean(W * PLAIN), rtol=1e-4, atol=1e-5)


def test_the_error_is_measured_before_the_step():
    rule = make_rule(mse, optax.sgd(0.5))
    before = rule.td_error(batch())
    _, td_error = rule.update(batch(), return_td_error=True)
    np.testing.assert_allclose(td_error, before, rtol=1e-5, atol=1e-6)
    assert not np.allclose(rule.td_error(batch()), before)


def test_metrics_are_those_of_the_contract():
    metrics = make_rule(mse).update(batch())
    assert sorted(metrics) == sorted(
        f"QLearning/{name}" for name in ("loss", "td_error", "td_error_targ", "grads_max", "grads_norm")
    )
    predicted = pick(S @ W1, A)
    np.testing.assert_allclose(metrics["QLearning/loss"], np.mean(W * 0.5 * PLAIN**2), rtol=1e-4)
    apart = np.mean(predicted - pick(S @ W2, A)) / B  # the gradient of a mean: over the batch size once more
    np.testing.assert_allclose(metrics["QLearning/td_error_targ"], apart, rtol=1e-4, atol=1e-6)
    assert all(isinstance(value, jax.Array) and value.shape == () for value in metrics.values())


def test_losses_are_divided_by_the_batch_size_not_by_the_weights():  # 17.6
    halved = make_rule(mse).update(batch(W=W / 2))["QLearning/loss"]
    np.testing.assert_allclose(halved, make_rule(mse).update(batch())["QLearning/loss"] / 2, rtol=1e-5)


def test_weights_below_a_tenth_count_as_they_are():  # F20
    metrics = make_rule(mse).update(batch(W=np.full(B, 1e-3)))
    np.testing.assert_allclose(metrics["QLearning/loss"], np.mean(1e-3 * 0.5 * PLAIN**2), rtol=1e-4)


def test_another_loss_function_takes_effect_at_once():  # F52
    rule = make_rule(huber)
    rule.update(batch())
    rule.td_error(batch())
    rule.loss_function = mse
    assert rule.loss_function is mse
    np.testing.assert_allclose(rule.td_error(batch()), rule.plain_td_error(batch()), rtol=1e-5)
    expected = np.mean(W * 0.5 * np.array(rule.td_error(batch())) ** 2)
    np.testing.assert_allclose(rule.update(batch())["QLearning/loss"], expected, rtol=1e-4)


def test_a_loss_may_be_any_function_of_target_and_prediction():
    rule = make_rule(lambda y_true, y_pred, w=None: logloss_sign(jnp.sign(y_true), y_pred, w))
    target, predicted = PLAIN + pick(S @ W1, A), pick(S @ W1, A)
    expected = np.mean(W * np.log1p(np.exp(-np.sign(target) * predicted)))
    np.testing.assert_allclose(rule.update(batch())["QLearning/loss"], expected, rtol=1e-4)


def test_the_temperature_takes_effect_and_compiles_nothing():  # F52, F54
    rule = SoftQLearning(make_q(W1), make_q(W2), loss_function=mse, temperature=1.0)
    rule.td_error(batch())
    for temperature in (0.1, 3.0):
        rule.temperature = temperature
        with counted_compilations() as count:
            td_error = np.array(rule.td_error(batch()))
        soft = temperature * np.log(np.exp((S_NEXT @ W2) / temperature).sum(axis=1))
        np.testing.assert_allclose(td_error, RN + IN * soft - pick(S @ W1, A), rtol=1e-3, atol=1e-4)
        assert count.compilations == 0
    assert rule.target_params["temperature"] == 3.0


def test_errors_on_the_device_serve_as_advantages():
    """A2C and PPO: nothing passes through the host."""
    v, pi = make_v(normal(STATE, seed=1)), make_policy(0.1 * W1)  # near uniform: no ratio is clipped
    simple_td = SimpleTD(v, optimizer=optax.sgd(0.1), loss_function=mse)
    made = batch(logP=np.log(np.full(B, 0.25)))
    for objective in (VanillaPG(pi, optax.sgd(0.01)), PPOClip(pi, optax.sgd(0.01))):
        before = weight_of(pi)
        metrics, td_error = simple_td.update(made, return_td_error=True)
        assert isinstance(td_error, jax.Array)
        metrics |= objective.update(made, td_error)
        objective.raise_if_not_finite()
        assert not np.array_equal(weight_of(pi), before)
        assert f"{type(objective).__name__}/kl_div_old" in metrics


def test_target_func_gives_the_target_of_the_batch():
    rule = make_rule(mse)
    G = rule.target_func(rule.target_params, rule.target_function_state, rule.rng, batch())
    np.testing.assert_allclose(G, RN + IN * (S_NEXT @ W2).max(axis=1), rtol=1e-5)
    assert set(rule.target_params) == {"q", "q_targ"}
    doubled = {**rule.target_params, "q_targ": {"w": 2 * W2}}
    G = jax.jit(rule.target_func)(doubled, rule.target_function_state, rule.rng, jax.tree.map(jnp.asarray, batch()))
    np.testing.assert_allclose(G, RN + IN * 2 * (S_NEXT @ W2).max(axis=1), rtol=1e-5)
