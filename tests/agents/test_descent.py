"""Steps of Adam on packed and unpacked weights."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from triax.agents import descent
from triax.agents.descent import Descent, packed, unpacked
from triax.agents.off_policy import Weights
from triax.learning import LossOutput

PARAMS = {"w": jnp.array([[1.0, -2.0], [0.5, 3.0]]), "b": jnp.array([0.1, 0.2])}


def loss(params, function_state, keys, context, batch):
    value = sum(jnp.sum(batch * jnp.square(leaf)) for leaf in jax.tree.leaves(params))
    return value, LossOutput({"mean": function_state["mean"] + context}, {"loss": value})


@pytest.mark.parametrize("largest", [0, 2**15])
@pytest.mark.parametrize("max_grad_norm", [None, 0.5])
def test_steps_are_those_of_optax(largest, max_grad_norm, monkeypatch):
    monkeypatch.setattr(descent, "LARGEST_PACKED", largest)
    taken = Descent(loss, max_grad_norm)
    weights, moments = Weights(PARAMS, {"mean": jnp.zeros(2)}), taken.init(PARAMS)
    clip = optax.identity() if max_grad_norm is None else optax.clip_by_global_norm(max_grad_norm)
    adam = optax.chain(clip, optax.adam(0.1))
    params, state = PARAMS, adam.init(PARAMS)
    for batch in (1.0, -3.0, 0.5):
        step = taken.step(weights, moments, jnp.float32(0.1), None, 1.0, batch)
        grads = jax.tree.map(lambda leaf: 2 * batch * leaf, params)
        np.testing.assert_allclose(step.metrics["grads_norm"], optax.tree.norm(grads), rtol=1e-6)
        changes, state = adam.update(grads, state)
        params = optax.apply_updates(params, changes)
        weights, moments = step.weights, step.moments
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), weights.params, params)
    assert step.finite and jnp.all(weights.function_state["mean"] == 3)


@pytest.mark.parametrize(("batch", "context"), [(np.nan, 1.0), (np.inf, 1.0), (1e30, 1.0), (1.0, np.nan)])
def test_a_step_that_is_not_finite_changes_nothing(batch, context):
    taken = Descent(loss)
    weights, moments = Weights(PARAMS, {"mean": jnp.zeros(2)}), taken.init(PARAMS)
    step = taken.step(weights, moments, jnp.float32(0.1), None, context, batch)
    assert not step.finite
    jax.tree.map(np.testing.assert_array_equal, (step.weights, step.moments), (weights, moments))


def test_a_function_state_that_was_infinite_before_stops_nothing():
    """Such as the smallest value so far."""
    taken = Descent(loss)
    weights = Weights(PARAMS, {"mean": jnp.array([jnp.inf, 0.0])})
    assert taken.step(weights, taken.init(PARAMS), jnp.float32(0.1), None, 1.0, 1.0).finite


def test_packing_keeps_dtypes_and_leaves_large_trees_alone():
    tree = {"half": jnp.ones((2, 3), jnp.float16), "single": jnp.arange(4.0)}
    assert packed(tree).shape == (10,)
    back = unpacked(packed(tree), tree)
    assert back["half"].dtype == jnp.float16
    jax.tree.map(np.testing.assert_array_equal, back, tree)
    large = {"w": jnp.zeros(2**15 + 1)}
    assert packed(large) is large and unpacked(large, large) is large
