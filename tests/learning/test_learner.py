"""A step is the optimizer's, or nothing at all; and it is a pure function."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from compilations import counted_compilations
from triax.learning import LossOutput, make_learner

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Y = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
PARAMS = {"a": np.array([0.5, -0.5, 1.0], np.float32), "b": np.float32(0.1)}
STATE = {"mean": np.float32(2.0), "count": np.int32(7)}
KEY = jax.random.PRNGKey(0)


def loss(params, function_state, rng, context, batch):
    """Least squares; ``context`` scales the gradients of each leaf, and what is added to the state."""
    x, y = batch
    params = {name: _scaled(params[name], context[name]) for name in params}
    error = x @ params["a"] + params["b"] - y
    state = {"mean": function_state["mean"] + context["mean"], "count": function_state["count"] + 1}
    return jnp.mean(error**2), LossOutput(state, {"rule/loss": jnp.mean(error**2)}, error)


@jax.custom_vjp
def _scaled(x, scale):
    return x


_scaled.defvjp(lambda x, scale: (x, scale), lambda scale, cotangent: (cotangent * scale, None))


def context(a=1.0, b=1.0, mean=1.0):
    return {"a": np.float32(a), "b": np.float32(b), "mean": np.float32(mean)}


def setup(optimizer):
    learner = make_learner(loss, optimizer, prefix="rule")
    params, state = jax.tree.map(jnp.asarray, (PARAMS, STATE))
    return learner, params, state, learner.init(params)


@pytest.fixture(scope="module")
def adam_step():
    learner, *weights = setup(optax.adam(0.1))
    return jax.jit(learner.step), weights


def assert_same(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)
        assert jnp.asarray(x).dtype == jnp.asarray(y).dtype


def test_finite_steps_are_those_of_the_optimizer(adam_step):
    step, (params, state, optimizer_state) = adam_step
    by_hand, optimizer = {name: jnp.asarray(leaf) for name, leaf in PARAMS.items()}, optax.adam(0.1)
    hand_state = optimizer.init(by_hand)
    for _ in range(3):
        grads = jax.grad(lambda p: jnp.mean((X @ p["a"] + p["b"] - Y) ** 2))(by_hand)
        updates, hand_state = optimizer.update(grads, hand_state, by_hand)
        by_hand = optax.apply_updates(by_hand, updates)
        done = step(params, state, optimizer_state, KEY, context(), (X, Y))
        params, state, optimizer_state = done[:3]
        assert done.finite.all()
    for name in PARAMS:
        np.testing.assert_allclose(params[name], by_hand[name], rtol=1e-5)
    assert state["count"] == STATE["count"] + 3
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in jax.tree.leaves(grads)))
    np.testing.assert_allclose(done.metrics["rule/grads_norm"], norm, rtol=1e-5)
    np.testing.assert_allclose(
        done.metrics["rule/grads_max"], max(np.abs(g).max() for g in jax.tree.leaves(grads)), rtol=1e-5
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])  # 1e30: Adam squares it
@pytest.mark.parametrize(("leaf", "flags"), [("a", [False, True]), ("b", [True, False])])
def test_a_gradient_that_is_not_finite_changes_nothing(adam_step, leaf, flags, bad):  # F48, F49
    step, weights = adam_step
    params, state, optimizer_state = step(*weights, KEY, context(), (X, Y))[:3]  # away from the start
    done = step(params, state, optimizer_state, KEY, context(**{leaf: bad}), (X, Y))
    assert_same(done[:3], (params, state, optimizer_state))
    assert done.finite[:2].tolist() == flags
    assert done.finite[3:].all()


def test_gradients_that_are_finite_alone_but_overflow_together_are_refused_and_named(adam_step):
    step, weights = adam_step
    grads = jax.grad(lambda p: jnp.mean((X @ p["a"] + p["b"] - Y) ** 2))(weights[0])
    scales = {name: 1.5e19 / np.linalg.norm(leaf) for name, leaf in grads.items()}  # float32 ends at 3.4e38
    assert step(*weights, KEY, context(scales["a"], 1.0), (X, Y)).finite.all()
    done = step(*weights, KEY, context(**scales), (X, Y))
    assert_same(done[:3], tuple(weights))
    assert not done.finite.all()


@pytest.mark.parametrize("rate", [np.nan, np.inf, 1e38])
def test_an_update_that_is_not_finite_changes_nothing(rate):  # F49
    learner, *weights = setup(optax.chain(optax.scale(rate), optax.trace(0.9)))
    done = jax.jit(learner.step)(*weights, KEY, context(a=10, b=0), (X, Y))
    assert_same(done[:3], tuple(weights))
    assert done.finite.tolist() == [True, True, False, True, True]  # gradients, weights, function state


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_function_state_that_turns_bad_changes_nothing(adam_step, bad):
    step, weights = adam_step
    done = step(*weights, KEY, context(mean=bad), (X, Y))
    assert_same(done[:3], tuple(weights))
    assert done.finite.tolist() == [True, True, True, True, False]  # in the order of leaves: count, mean


def test_a_function_state_that_never_was_finite_does_not_stop_training(adam_step):
    step, (params, state, optimizer_state) = adam_step
    done = step(params, {**state, "mean": jnp.float32(-np.inf)}, optimizer_state, KEY, context(), (X, Y))
    assert done.finite.all()
    assert not np.array_equal(done.params["a"], params["a"])


def test_half_precision_gradients_may_be_large():
    """1000 squared is beyond float16."""
    learner = make_learner(
        lambda params, state, rng, context, batch: (jnp.sum(params * 1000), LossOutput((), {})),
        optax.sgd(1e-3),
        prefix="rule",
    )
    params = jnp.ones(3, jnp.float16)
    done = jax.jit(learner.step)(params, (), learner.init(params), KEY, None, None)
    assert done.finite.all()
    assert done.params.dtype == jnp.float16
    np.testing.assert_allclose(done.params, 0, atol=1e-2)
    np.testing.assert_allclose(done.metrics["rule/grads_norm"], 1000 * np.sqrt(3), rtol=1e-3)


def test_many_leaves_are_kept_or_replaced_together():
    params = {f"w{k}": jnp.full(2, float(k)) for k in range(20)}

    def sum_of_squares(params, state, rng, scale, batch):
        return sum(jnp.sum(leaf**2) for leaf in params.values()) * scale, LossOutput((), {})

    learner = make_learner(sum_of_squares, optax.sgd(0.25), prefix="rule")
    step = jax.jit(learner.step)
    done = step(params, (), learner.init(params), KEY, jnp.float32(1), None)
    assert_same(done.params, {name: leaf * 0.5 for name, leaf in params.items()})
    assert_same(step(params, (), learner.init(params), KEY, jnp.float32(np.nan), None).params, params)


def test_step_is_gradients_and_apply(adam_step):
    learner, *weights = setup(optax.adam(0.1))
    grads, output = jax.jit(learner.gradients)(*weights[:2], KEY, context(), (X, Y))
    *applied, finite = jax.jit(learner.apply)(*weights, grads, output.function_state)
    done = adam_step[0](*weights, KEY, context(), (X, Y))
    for x, y in zip(jax.tree.leaves(applied), jax.tree.leaves(done[:3]), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
    assert finite.all()
    np.testing.assert_allclose(output.per_sample, done.per_sample, rtol=1e-6)


def test_vmap_over_seeds_leaves_out_only_the_members_that_are_not_finite(adam_step):
    step, weights = adam_step
    scales = np.array([1.0, np.nan, 2.0], np.float32)
    contexts = {"a": scales, "b": np.ones(3, np.float32), "mean": np.ones(3, np.float32)}
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), weights)
    many = jax.jit(jax.vmap(step, in_axes=(0, 0, 0, None, 0, None)))(*stacked, KEY, contexts, (X, Y))
    for k, scale in enumerate(scales):
        one = step(*weights, KEY, context(a=scale), (X, Y))
        for x, y in zip(jax.tree.leaves(many[:3]), jax.tree.leaves(one[:3]), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-5)
        assert many.finite[k].all() == np.isfinite(scale)


def test_scan_over_batches_is_the_loop(adam_step):
    step, weights = adam_step
    batches = np.stack([X, 2 * X, -X]), np.stack([Y, Y + 1, Y])

    def one(weights, batch):
        done = step(*weights, KEY, context(), batch)
        return done[:3], done.metrics["rule/loss"]

    scanned, losses = jax.lax.scan(one, tuple(weights), batches)
    looped = tuple(weights)
    for k in range(3):
        looped, loss_k = one(looped, (batches[0][k], batches[1][k]))
        np.testing.assert_allclose(losses[k], loss_k, rtol=1e-5)
    for x, y in zip(jax.tree.leaves(scanned), jax.tree.leaves(looped), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_a_step_can_be_compiled_for_accelerators():
    learner, *weights = setup(optax.adam(0.1))
    exported = jax.export.export(jax.jit(learner.step), platforms=("cpu", "cuda", "tpu"))(
        *weights, KEY, context(), (X, Y)
    )
    assert exported.platforms == ("cpu", "cuda", "tpu")


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.adam(optax.linear_schedule(0.1, 0.0, 10)),
        optax.inject_hyperparams(optax.adam)(0.1),
        optax.chain(optax.add_noise(0.1, 0.5, 0), optax.sgd(0.1)),
        optax.GradientTransformation(lambda params: {"n": 1.0}, lambda u, s, p=None: (u, {"n": s["n"] + 1})),
    ],
    ids=["schedule", "injected", "with a key", "Python number in its state"],
)
def test_the_second_step_compiles_nothing(optimizer):
    learner, *weights = setup(optimizer)
    step = jax.jit(learner.step)
    weights = step(*weights, KEY, context(), (X, Y))[:3]
    with counted_compilations() as count:
        step(*weights, KEY, context(), (X, Y))
    assert count.compilations == 0
