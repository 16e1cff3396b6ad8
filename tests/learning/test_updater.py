"""The shell trains in place in one compiled call, gives out arrays that stay good, and is never left half-done."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import triax
from compilations import counted_compilations, python_files_of_jax_run_by
from linear_functions import (
    ACTIONS,
    DISCRETE,
    STATE,
    Linear,
    OfPair,
    OfState,
    as_logits,
    batch,
    make_policy,
    make_q,
    make_v,
    normal,
    weight_of,
    with_field,
)
from triax.core import sync_shared_params
from triax.core.errors import NonFiniteError
from triax.losses.value_losses import mse
from triax.policy_objectives import VanillaPG
from triax.td_learning import ExpectedSarsa, QLearning, SimpleTD

W1, W2 = normal(STATE, ACTIONS), normal(STATE, ACTIONS)
SGD = {"optimizer": optax.sgd(0.5), "loss_function": mse}


def make_rule(q=None, **options):
    return QLearning(make_q(W1) if q is None else q, q_targ=make_q(W2), **({"optimizer": optax.adam(0.1)} | options))


def everything(rule):
    """All that a step may change, as NumPy copies."""
    trained = rule._trained
    return jax.tree.map(np.array, (trained.params, trained.function_state, rule.optimizer_state))


def assert_same(found, expected):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)


class Counting(Linear):
    """A value function with variables: a running mean, and one that no call changes."""

    def __init__(self, w):
        super().__init__(w)
        self.mean, self.constant = nnx.BatchStat(jnp.zeros(STATE)), nnx.BatchStat(jnp.ones(STATE))

    def __call__(self, S, is_training):
        if is_training:
            self.mean[...] = 0.9 * self.mean[...] + 0.1 * S.mean(0)
        return (S - self.mean[...]) * self.constant[...] @ self.w[...]


def make_stateful_rule():
    v = triax.V(Counting(normal(STATE, seed=1)), DISCRETE, random_seed=0)
    return SimpleTD(v, optimizer=optax.adam(0.1))


# ------------------------------------------------------------------ steps that are not finite


def test_a_loss_that_overflows_is_only_reported_where_its_gradient_is_right():
    rule = make_rule(optimizer=optax.sgd(0.1))  # huber: each error pulls with force one
    metrics = rule.update(batch(Rn=np.full(5, 3e38, np.float32)))
    rule.raise_if_not_finite()
    assert np.isinf(metrics["QLearning/loss"]) and np.isfinite(metrics["QLearning/grads_norm"])
    assert not np.array_equal(weight_of(rule.q), W1) and np.isfinite(weight_of(rule.q)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30], ids=["NaN", "infinite", "huge"])
def test_a_step_that_is_not_finite_changes_nothing_and_the_next_call_says_so(bad):  # F48, F49
    rule = make_rule(loss_function=mse)
    rule.update(batch())
    weights = np.array(W1)
    weights[0, 0] = bad
    rule.q.params, good = {"w": weights}, rule.q.params
    before = everything(rule)
    rule.update(batch(S=np.full((5, 3), 2, np.float32), A=np.zeros(5, int), Rn=np.full(5, -1e20)), True)
    assert_same(everything(rule), before)
    with pytest.raises(NonFiniteError, match=r"QLearning: step 2 had gradients .* in params\['w'\].*left out"):
        rule.update(batch())
    assert_same(everything(rule), before)
    rule.q.params = good
    rule.update(batch())
    assert not np.array_equal(weight_of(rule.q), W1)
    rule.raise_if_not_finite()


def test_the_error_is_both_a_runtime_and_a_value_error():
    assert issubclass(NonFiniteError, RuntimeError)
    assert issubclass(NonFiniteError, ValueError)


CALLS = {
    "update": lambda rule: rule.update(batch()),
    "td_error": lambda rule: rule.td_error(batch()),
    "plain_td_error": lambda rule: rule.plain_td_error(batch()),
    "grads_and_metrics": lambda rule: rule.grads_and_metrics(batch()),
    "apply_grads": lambda rule: rule.apply_grads({"w": jnp.zeros((STATE, ACTIONS))}, {}),
    "raise_if_not_finite": lambda rule: rule.raise_if_not_finite(),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_method_reports_a_step_that_was_left_out_but_once(call):
    rule = make_rule()
    rule.apply_grads({"w": jnp.full((STATE, ACTIONS), jnp.nan)}, {})
    with pytest.raises(NonFiniteError, match="QLearning: step 1"):
        CALLS[call](rule)
    CALLS[call](rule)


def test_function_state_that_is_left_out_is_named():
    rule = make_stateful_rule()
    grads, state, *_ = rule.grads_and_metrics(batch())
    before = everything(rule)
    rule.apply_grads(grads, {**state, "mean": jnp.full(STATE, jnp.inf)})
    with pytest.raises(NonFiniteError, match=r"SimpleTD: step 1 .* in function_state\['mean'\]"):
        rule.raise_if_not_finite()
    assert_same(everything(rule), before)


def test_a_learning_rate_that_is_nan_is_caught_and_named():  # F49
    rule = make_rule(optimizer=optax.inject_hyperparams(optax.adam)(0.1))
    rule.update(batch())
    rule.optimizer_state.hyperparams["learning_rate"] = np.nan
    before = everything(rule)
    rule.update(batch())
    assert_same(everything(rule), before)
    with pytest.raises(NonFiniteError, match=r"QLearning: step 2 .* in the new weights\."):
        rule.raise_if_not_finite()


def test_nan_on_the_device_is_caught_by_the_step():
    """A device array is not looked at when it comes in."""
    rule = make_rule()
    before = everything(rule)
    rule.update(with_field("Rn", jnp.full(5, jnp.nan)))
    assert_same(everything(rule), before)
    with pytest.raises(NonFiniteError):
        rule.raise_if_not_finite()


@pytest.mark.parametrize("name", ["S", "S_next", "Rn", "In", "logP", "W"])
def test_nan_in_a_batch_raises_at_once_and_changes_nothing(name):
    rule = make_rule()
    field = np.array(getattr(batch(), name))
    field[2] = np.nan
    before = everything(rule)
    with pytest.raises(ValueError, match=rf"QLearning: batch\.{name} "):
        rule.update(with_field(name, field))
    assert_same(everything(rule), before)
    rule.update(batch())


# ------------------------------------------------------------------ one compiled call


def test_an_update_runs_no_python_code_of_jax_but_to_flatten_trees():
    """So there is no eager operation, no key split and no call that misses its cache."""
    rule = make_rule()
    for _ in range(3):
        rule.update(batch())
    data = batch()
    assert python_files_of_jax_run_by(lambda: rule.update(data)) <= {"tree.py", "tree_util.py"}


def test_many_updates_compile_once():
    q = make_q(W1)
    rule = QLearning(q, q_targ=q.copy())
    rule.update(batch())
    # What copies and averages compile, once:
    rule.q_targ.soft_update(q, 0.5)
    q.params, q.function_state, rule.optimizer_state, rule.random_seed = {"w": W1}, {}, rule.optimizer_state, 4
    with counted_compilations() as count:
        for _ in range(3):
            rule.update(batch())
            rule.q_targ.soft_update(q, 0.1)
            rule.update(batch(Rn=np.ones(5), W=None, A=np.zeros(5, np.int8), S=np.zeros((5, 3))))
            q.params, q.function_state = {"w": W2}, q.function_state
            rule.random_seed = 5
            assert isinstance(rule.optimizer_state, tuple)
    assert count.compilations == 0


def test_batches_on_the_device_compile_once_too():
    rule = make_rule()
    on_device, ones = jax.tree.map(jnp.asarray, batch()), jnp.ones(5)
    rule.update(on_device)
    with counted_compilations() as count:
        rule.update(on_device)
        rule.update(with_field("W", ones))
    assert count.compilations == 0


# ------------------------------------------------------------------ arrays that were handed out


def read_all(tree):
    return [np.array(leaf) for leaf in jax.tree.leaves(tree)]


HANDED_OUT = {
    "params": lambda rule: rule.v.params,
    "function_state": lambda rule: rule.v.function_state,
    "optimizer_state": lambda rule: rule.optimizer_state,
    "target_params": lambda rule: rule.target_params,
    "target_function_state": lambda rule: rule.target_function_state,
    "grads_and_metrics": lambda rule: rule.grads_and_metrics(batch()),
    "context": lambda rule: rule.context(),
    "update": lambda rule: rule.update(batch(), return_td_error=True),
    "td_error": lambda rule: rule.td_error(batch()),
}


@pytest.mark.parametrize("what", HANDED_OUT)
def test_arrays_that_were_handed_out_stay_as_they_are(what):
    rule = make_stateful_rule()
    rule.update(batch())
    handed_out = HANDED_OUT[what](rule)
    before = read_all(handed_out)
    for _ in range(2):
        rule.update(batch())
    rule.apply_grads(*rule.grads_and_metrics(batch())[:2])
    rule.update(batch())
    assert_same(handed_out, before)


def test_arrays_that_were_taken_in_stay_as_they_are():
    rule = make_stateful_rule()
    grads, state, *_ = rule.grads_and_metrics(batch())
    taken_in = {"w": jnp.asarray(normal(STATE))}, state, grads, jax.tree.map(jnp.array, rule.optimizer_state)
    before = read_all(taken_in)
    rule.v.params, rule.v.function_state = taken_in[:2]
    rule.optimizer_state = taken_in[3]
    rule.apply_grads(grads, state)
    for _ in range(2):
        rule.update(batch())
    assert_same(taken_in, before)


def test_a_target_that_shares_its_arrays_with_the_trained_function_is_safe():
    q, q_targ = make_q(W1), make_q(W2)
    rule = QLearning(q, q_targ=q_targ, **SGD)
    for _ in range(2):
        q_targ.params = q.params
        expected = weight_of(q)
        rule.update(batch())
        np.testing.assert_array_equal(weight_of(q_targ), expected)
        assert not np.array_equal(weight_of(q), expected)


def test_a_function_may_be_its_own_target():
    alone, beside = QLearning(make_q(W1), **SGD), QLearning(make_q(W1), q_targ=make_q(W1), **SGD)
    for _ in range(3):
        alone.update(batch())
        beside.update(batch())
        np.testing.assert_allclose(weight_of(alone.q), weight_of(beside.q), rtol=1e-5)
        beside.q_targ.soft_update(beside.q, 1)


def test_a_policy_derived_from_the_function_in_training_may_be_the_target_policy():
    q = make_q(W1)
    pi = triax.EpsilonGreedy(q, epsilon=0.3)
    alone = ExpectedSarsa(q, pi, **SGD)
    twin = make_q(W1)
    beside = ExpectedSarsa(make_q(W1), triax.EpsilonGreedy(twin, epsilon=0.3), **SGD)
    for _ in range(3):
        alone.update(batch())
        twin.params = beside.q.params
        beside.update(batch())
        np.testing.assert_allclose(weight_of(q), weight_of(beside.q), rtol=1e-5)
        assert 0 <= pi(np.zeros(3, np.float32)) < ACTIONS


class Torso(nnx.Module):
    """Two matrices, of which the first has the same name in policy and value function."""

    def __init__(self, head, finish=lambda x: x):
        self.torso, self.head = nnx.Param(jnp.asarray(normal(STATE, 2))), nnx.Param(jnp.asarray(head))
        self.finish = finish

    def __call__(self, S, is_training):
        return self.finish(S @ self.torso[...] @ self.head[...])


def test_shared_params_of_policy_and_value_may_be_synchronised_between_updates():
    pi = triax.Policy(Torso(normal(2, ACTIONS), as_logits), DISCRETE, random_seed=0)
    v = triax.V(Torso(normal(2)), DISCRETE, random_seed=0)
    simple_td, vanilla_pg = SimpleTD(v, **SGD), VanillaPG(pi, optax.sgd(0.1))
    for _ in range(3):
        _, td_error = simple_td.update(batch(), return_td_error=True)
        vanilla_pg.update(batch(), td_error)
        mean = (np.array(pi.params["torso"]) + np.array(v.params["torso"])) / 2
        shared = {"torso": pi.params["torso"]}, {"torso": v.params["torso"]}
        for f, synced in zip((pi, v), sync_shared_params(*shared), strict=True):
            f.params = {**f.params, **synced}
            np.testing.assert_allclose(f.params["torso"], mean, rtol=1e-6)


def test_two_rules_may_train_one_function():
    """An optimizer whose state is made of the weights themselves must not notice that the other donates them."""
    q = make_q(W1)
    QLearning(q, **SGD).update(batch())
    first, second = QLearning(q, **SGD), QLearning(q, optimizer=optax.contrib.schedule_free_sgd(0.1))
    for _ in range(2):
        first.update(batch())
        second.update(batch())
    assert np.isfinite(weight_of(q)).all()


def test_a_successor_state_q_may_be_the_target():
    w_v, w_p, w_r = normal(STATE), normal(STATE + ACTIONS, STATE), normal(STATE + ACTIONS)
    v = make_v(w_v)
    p = triax.TransitionModel(OfPair(w_p), DISCRETE, random_seed=0)
    r = triax.RewardFunction(OfPair(w_r), DISCRETE, random_seed=0)
    q_targ = triax.SuccessorStateQ(v, p, r, gamma=0.8)
    rule = QLearning(make_q(W1), q_targ=q_targ, optimizer=optax.sgd(1.0), loss_function=mse)
    made = batch()
    features = np.concatenate([np.repeat(made.S_next, ACTIONS, 0), np.tanh(np.tile(np.eye(ACTIONS), (5, 1)))], axis=1)
    values = (features @ w_r + 0.8 * (features @ w_p) @ w_v).reshape(5, ACTIONS)
    expected = made.Rn + made.In * values.max(1) - (made.S @ W1)[np.arange(5), made.A]
    np.testing.assert_allclose(rule.plain_td_error(made), expected, rtol=1e-4)
    SimpleTD(v, **SGD).update(made)  # donates a part of the target
    rule.update(made)
    q_targ.gamma = 0.0
    expected = (
        made.Rn
        + made.In * (features @ w_r).reshape(5, ACTIONS).max(1)
        - (made.S @ weight_of(rule.q))[np.arange(5), made.A]
    )
    with counted_compilations() as count:
        changed = rule.plain_td_error(made)
    np.testing.assert_allclose(changed, expected, rtol=1e-4)  # F52
    assert count.compilations == 0


# ------------------------------------------------------------------ gradients computed elsewhere


def test_grads_and_metrics_changes_nothing():
    rule = make_stateful_rule()
    rule.update(batch())
    before = everything(rule)
    first = rule.grads_and_metrics(batch())
    assert_same(everything(rule), before)
    assert_same(rule.grads_and_metrics(batch())[0], first[0])


def test_apply_grads_equals_update():
    one, other = make_stateful_rule(), make_stateful_rule()
    for _ in range(3):
        metrics, td_error = one.update(batch(), return_td_error=True)
        grads, state, metrics_elsewhere, td_error_elsewhere = other.grads_and_metrics(batch())
        other.apply_grads(grads, state)
        for x, y in zip(jax.tree.leaves(everything(one)), jax.tree.leaves(everything(other)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)
        assert metrics.keys() == metrics_elsewhere.keys()
        np.testing.assert_allclose(td_error, td_error_elsewhere, rtol=1e-5)


def test_gradients_as_numpy_arrays_from_another_process_can_be_applied():
    rule = make_rule(**SGD)
    rule.apply_grads({"w": np.ones((STATE, ACTIONS), np.float32)}, {})
    np.testing.assert_allclose(weight_of(rule.q), W1 - 0.5, rtol=1e-6)


@pytest.mark.parametrize(
    ("grads", "message"),
    [
        ({"u": jnp.zeros(2)}, r"QLearning\.apply_grads: grads does not fit.*grads\['w'\]: missing"),
        ({"w": jnp.zeros(2)}, r"grads\['w'\]: expected float32\[3,4\], got float32\[2\]"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(grads, message):
    rule = make_rule()
    before = everything(rule)
    with pytest.raises(TypeError, match=r"(?s)" + message):
        rule.apply_grads(grads, {})
    assert_same(everything(rule), before)


def test_function_state_that_does_not_fit_is_refused():
    rule = make_stateful_rule()
    with pytest.raises(TypeError, match=r"(?s)SimpleTD\.apply_grads: function_state does not fit.*mean"):
        rule.apply_grads({"w": jnp.zeros(STATE)}, {"mean": jnp.zeros(2), "constant": jnp.zeros(STATE)})


# ------------------------------------------------------------------ optimizer


def test_another_optimizer_with_such_a_state_takes_effect_and_the_state_is_kept():  # F52
    rule = make_rule(optimizer=optax.sgd(0.0, momentum=0.9), loss_function=mse)
    rule.update(batch())
    np.testing.assert_array_equal(weight_of(rule.q), W1)
    momentum = weight_of(rule.optimizer_state)
    rule.optimizer = optax.sgd(1.0, momentum=0.9)
    grads = weight_of(rule.grads_and_metrics(batch())[0])
    rule.update(batch())
    np.testing.assert_allclose(weight_of(rule.q), W1 - (grads + 0.9 * momentum), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [make_rule, lambda: VanillaPG(make_policy(W1), optax.adam(0.1))])
def test_an_optimizer_or_state_of_another_structure_is_refused(make):  # F50
    rule = make()
    before = everything(rule)
    name = type(rule).__name__
    with pytest.raises(AttributeError, match=rf"{name}\.optimizer: its state does not fit"):
        rule.optimizer = optax.sgd(0.1)
    with pytest.raises(AttributeError, match=rf"{name}\.optimizer_state: its state does not fit"):
        rule.optimizer_state = optax.sgd(0.1).init(rule._trained.params)
    wrong = jax.tree.map(lambda leaf: jnp.zeros((2, *leaf.shape)), rule.optimizer_state)
    with pytest.raises(AttributeError, match=r"expected float32\[3,4\], got float32\[2,3,4\]"):
        rule.optimizer_state = wrong
    assert_same(everything(rule), before)


def test_something_that_is_no_optimizer_is_refused():
    rule = make_rule()
    with pytest.raises(TypeError):
        make_rule(optimizer=0.1)
    with pytest.raises(TypeError):
        rule.optimizer = 0.1


def test_a_state_can_be_saved_and_restored():
    rule = make_rule()
    rule.update(batch())
    saved, weights = jax.tree.map(np.array, (rule.optimizer_state, rule.q.params))
    rule.update(batch())
    expected = everything(rule)
    rule.optimizer_state, rule.q.params = saved, weights
    rule.update(batch())
    assert_same(everything(rule), expected)


@pytest.mark.parametrize("convert", [float, np.float32, np.float64, jnp.asarray, jnp.float32])
def test_an_injected_learning_rate_takes_effect_and_compiles_nothing(convert):  # F51
    rule = make_rule(optimizer=optax.inject_hyperparams(optax.sgd)(0.5), loss_function=mse)
    rule.update(batch())
    rule.optimizer_state.hyperparams["learning_rate"] = 0.5
    rule.update(batch())
    convert(0.25)  # what the conversion itself compiles
    before, grads = weight_of(rule.q), weight_of(rule.grads_and_metrics(batch())[0])
    with counted_compilations() as count:
        rule.optimizer_state.hyperparams["learning_rate"] = convert(0.25)
        rule.update(batch())
    np.testing.assert_allclose(weight_of(rule.q), before - 0.25 * grads, rtol=1e-5)
    assert count.compilations == 0


def test_a_scheduled_learning_rate_takes_effect_and_compiles_nothing():  # F51
    rule = make_rule(optimizer=optax.sgd(optax.linear_schedule(1.0, 0.0, 2)), loss_function=mse)
    rule.update(batch())
    with counted_compilations() as count:
        rule.update(batch())
        before = weight_of(rule.q)
        rule.update(batch())
    assert count.compilations == 0
    np.testing.assert_array_equal(weight_of(rule.q), before)


# ------------------------------------------------------------------ weights, randomness, kinds


def test_weight_clip_takes_effect_at_any_time():  # F20, F52
    rule = make_rule(**SGD)
    made = batch(W=np.array([0.01, 0.05, 1, 2, 30]))
    for bounds in ((0.0, 10.0), (0.1, 10.0), None, (0.5, 1.5)):
        rule.weight_clip = bounds
        assert rule.weight_clip == bounds
        clipped = batch(W=made.W if bounds is None else np.clip(made.W, *bounds))
        metrics = rule.grads_and_metrics(made)[2]
        rule.weight_clip = None
        np.testing.assert_allclose(
            metrics["QLearning/loss"], rule.grads_and_metrics(clipped)[2]["QLearning/loss"], rtol=1e-5
        )


def test_weights_of_prioritized_replay_pass_by_default():  # F20
    rule = make_rule(**SGD)
    assert rule.weight_clip == (0.0, 10.0)
    small = rule.grads_and_metrics(batch(W=np.full(5, 1e-3)))[0]
    full = rule.grads_and_metrics(batch(W=np.ones(5)))[0]
    np.testing.assert_allclose(weight_of(small), 1e-3 * weight_of(full), rtol=1e-4)


@pytest.mark.parametrize("bounds", [(2.0, 1.0), (1.0,), 3.0, (np.nan, 1.0), ("a", "b")])
def test_bounds_of_weights_must_be_a_pair(bounds):
    rule = make_rule()
    with pytest.raises((ValueError, TypeError)):
        rule.weight_clip = bounds
    assert rule.weight_clip == (0.0, 10.0)


def test_rules_have_a_seed_and_a_stream_of_keys():  # F68
    rule = make_rule()
    assert rule.random_seed == 0
    first, second = rule.rng, rule.rng
    assert not np.array_equal(first, second)
    rule.random_seed = 0
    np.testing.assert_array_equal(rule.rng, first)


class Noisy(OfState):
    def __init__(self, w, rngs):
        super().__init__(w)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, S, is_training):
        return self.dropout(S) @ self.w[...]


def make_noisy_rule():
    return QLearning(triax.Q(lambda rngs: Noisy(W1, rngs), DISCRETE, random_seed=0), q_targ=make_q(W2), **SGD)


def test_each_step_draws_its_own_noise_and_the_seed_fixes_all_of_it():
    one, other = make_noisy_rule(), make_noisy_rule()
    first, second = (weight_of(one.grads_and_metrics(batch())[0]) for _ in range(2))
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(weight_of(other.grads_and_metrics(batch())[0]), first)


def test_functions_of_a_rule_are_fixed():  # F52: they cannot be changed without effect
    rule = ExpectedSarsa(make_q(W1), make_policy(W2), make_q(W2))
    for name in ("q", "q_targ", "pi_targ", "policy_regularizer", "target_params"):
        with pytest.raises(AttributeError):
            setattr(rule, name, None)


def test_the_learner_of_a_rule_trains_as_the_rule_does():
    """The pure core under scan: the same weights as the shell's loop."""
    rule = make_rule(**SGD)
    learner, context = rule.learner, rule.context()
    weights = rule.q.params, rule.q.function_state, rule.optimizer_state
    batches = [batch(), batch(Rn=np.ones(5)), batch(Rn=-np.ones(5))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *batches)

    def step(weights, made):
        done = learner.step(*weights, jax.random.PRNGKey(0), context, made)
        return done[:3], done.metrics["QLearning/loss"]

    (params, *_), losses = jax.lax.scan(step, weights, stacked)
    expected = [rule.update(made)["QLearning/loss"] for made in batches]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(weight_of(params), weight_of(rule.q), rtol=1e-5)


def test_the_learner_of_a_rule_runs_over_seeds():
    rule = make_rule(**SGD)
    seeds = jnp.stack([jnp.asarray(W1), jnp.asarray(W2)])
    context, made = rule.context(), jax.tree.map(jnp.asarray, batch())

    def step(w):
        params = {"w": w}
        return rule.learner.step(params, {}, rule.learner.init(params), rule.rng, context, made).params["w"]

    together = jax.jit(jax.vmap(step))(seeds)
    for k, w in enumerate((W1, W2)):
        alone = make_rule(make_q(w), **SGD)
        alone.update(batch())
        np.testing.assert_allclose(together[k], weight_of(alone.q), rtol=1e-5)


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_rule().update(batch())
