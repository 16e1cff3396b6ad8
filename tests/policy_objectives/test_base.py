"""What all objectives share: regularizers, checks, gradients computed elsewhere."""

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
    BINS,
    DISCRETE,
    ROWS,
    STATE,
    A,
    B,
    S,
    W,
    as_logits,
    batch,
    entropy_of,
    make_binned_q,
    make_binned_v,
    make_policy,
    make_q,
    make_real_policy,
    make_v,
    normal,
    softmax,
    weight_of,
    with_field,
)
from triax.core.errors import NonFiniteError
from triax.policy_objectives import PolicyObjective, PPOClip, VanillaPG
from triax.regularizers import EntropyRegularizer, KLDivRegularizer

W1 = normal(STATE, ACTIONS)
ADV = np.array([1.5, -2.0, 0.5, -0.3, 2.5], np.float32)


def policy_loss(w):
    return -jnp.sum(W * ADV * jax.nn.log_softmax(S @ w)[ROWS, A]) / B


def test_the_entropy_of_the_policy_itself_is_added_with_its_gradient():
    pi = make_policy(W1)
    objective = VanillaPG(pi, optax.sgd(0.5), EntropyRegularizer(pi, beta=0.3))

    def loss(w):
        log_p = jax.nn.log_softmax(S @ w)
        return policy_loss(w) + jnp.sum(W * 0.3 * jnp.sum(jnp.exp(log_p) * log_p, axis=-1)) / B

    metrics = objective.update(batch(), ADV)
    value, gradient = jax.value_and_grad(loss)(W1)
    np.testing.assert_allclose(weight_of(pi), W1 - 0.5 * gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(metrics["VanillaPG/loss"], value, rtol=1e-4)
    np.testing.assert_allclose(metrics["VanillaPG/loss_bare"], policy_loss(W1), rtol=1e-4)
    np.testing.assert_allclose(metrics["VanillaPG/EntropyRegularizer/entropy"], entropy_of(S @ W1).mean(), rtol=1e-4)
    np.testing.assert_allclose(metrics["VanillaPG/EntropyRegularizer/beta"], 0.3, rtol=1e-6)


OTHERS = {
    "another policy": (lambda: make_policy(normal(STATE, ACTIONS, seed=1)), ACTIONS),
    "a StochasticV": (lambda: make_binned_v(normal(STATE, BINS, seed=1)), BINS),
    "a StochasticQ": (lambda: make_binned_q(normal(STATE, ACTIONS * BINS, seed=1)), BINS),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_regularizer_of_another_function_uses_the_weights_of_that(kind):  # F58, F59
    """It is a constant for the policy."""
    make, size = OTHERS[kind]
    f, pi = make(), make_policy(W1)
    objective = VanillaPG(pi, optax.sgd(0.5), EntropyRegularizer(f, beta=0.3))
    logits = (S @ weight_of(f)).reshape(B, -1, size)
    entropy = entropy_of(logits[ROWS, A] if kind == "a StochasticQ" else logits[:, 0])
    metrics = objective.update(batch(), ADV)
    np.testing.assert_allclose(metrics["VanillaPG/loss"], policy_loss(W1) - 0.3 * np.mean(W * entropy), rtol=1e-4)
    np.testing.assert_allclose(weight_of(pi), W1 - 0.5 * jax.grad(policy_loss)(W1), rtol=1e-4, atol=1e-6)


def test_numbers_and_priors_of_the_regularizer_take_effect_and_compile_nothing():  # F52
    pi = make_policy(W1)
    regularizer = KLDivRegularizer(pi, beta=1.0)
    objective = VanillaPG(pi, optax.sgd(0.0), regularizer)
    objective.update(batch(), ADV)
    prior = np.array([[0.0, 2.0, -1.0, 0.5]], np.float32)
    p = softmax(S @ W1)
    with counted_compilations() as count:
        regularizer.beta, regularizer.priors = 0.5, {"logits": prior}
        loss = np.array(objective.update(batch(), ADV)["VanillaPG/loss"])
    divergence = np.sum(p * (np.log(p) - np.log(softmax(prior))), axis=1)
    np.testing.assert_allclose(loss, policy_loss(W1) + 0.5 * np.mean(W * divergence), rtol=1e-4)
    assert count.compilations == 0


def test_weights_are_clipped_in_objective_and_regularizer():  # F20
    pi = make_policy(W1)
    objective = VanillaPG(pi, optax.sgd(0.0), EntropyRegularizer(pi, beta=0.3))
    weights = np.array([0.01, 1.0, 2.0, 30.0, 5.0])
    log_p = np.log(softmax(S @ W1))[ROWS, A]
    for bounds in ((0.0, 10.0), (0.1, 4.0), None):
        objective.weight_clip = bounds
        clipped = weights if bounds is None else np.clip(weights, *bounds)
        expected = -np.mean(clipped * (ADV * log_p + 0.3 * entropy_of(S @ W1)))
        np.testing.assert_allclose(objective.update(batch(W=weights), ADV)["VanillaPG/loss"], expected, rtol=1e-4)


class NoisyPolicy(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.BatchNorm(STATE, rngs=rngs)
        self.w = nnx.Param(jnp.asarray(W1))

    def __call__(self, S, is_training):
        return as_logits(self.norm(S) @ self.w[...])


def test_the_policy_runs_in_training_mode_and_its_state_moves_on():
    pi = triax.Policy(NoisyPolicy, DISCRETE, random_seed=0)
    VanillaPG(pi, optax.sgd(0.1)).update(batch(), ADV)
    np.testing.assert_allclose(pi.function_state["norm"]["mean"], 0.01 * S.mean(0), rtol=1e-4, atol=1e-6)


def test_an_update_with_an_advantage_on_the_device_is_one_compiled_call():
    pi = make_policy(W1)
    objective = VanillaPG(pi, optax.sgd(0.1), EntropyRegularizer(pi))
    data, adv = batch(), jnp.asarray(ADV)
    for _ in range(3):
        objective.update(data, adv)
    assert python_files_of_jax_run_by(lambda: objective.update(data, adv)) <= {"tree.py", "tree_util.py"}


# ------------------------------------------------------------------ gradients computed elsewhere


def test_gradients_can_be_computed_here_and_applied_there():
    one, other = (VanillaPG(make_policy(W1), optax.sgd(0.5)) for _ in range(2))
    grads, state, metrics = one.grads_and_metrics(batch(), ADV)
    np.testing.assert_array_equal(weight_of(one.pi), W1)
    one.apply_grads(grads, state)
    assert metrics.keys() == other.update(batch(), ADV).keys()
    np.testing.assert_allclose(weight_of(one.pi), weight_of(other.pi), rtol=1e-5)


def test_an_objective_is_a_function_of_weights_and_batch():
    objective = PPOClip(make_policy(W1))
    params = objective.pi.params
    made = jax.tree.map(jnp.asarray, batch(logP=np.log(softmax(S @ W1))[ROWS, A]))
    value, (dist_params, log_pi, state) = objective.objective_func(
        params, objective.pi.function_state, objective.hyperparams, jax.random.PRNGKey(0), made, jnp.asarray(ADV)
    )
    np.testing.assert_allclose(value, np.mean(W * ADV), rtol=1e-4)
    np.testing.assert_allclose(dist_params["logits"], S @ W1, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(log_pi, made.logP, rtol=1e-4)
    assert state == {}


def test_an_own_objective_needs_only_its_formula():
    class Imitation(PolicyObjective):
        """The likelihood of the batch's actions."""

        def objective_func(self, params, state, hyperparams, rng, transition_batch, Adv):
            S = self.pi.observation_preprocessor(rng, transition_batch.S)
            dist_params, state = self.pi.function(params, state, rng, S, True)
            A = self.pi.proba_dist.preprocess_variate(rng, transition_batch.A)
            log_pi = self.pi.proba_dist.log_proba(dist_params, A)
            return jnp.mean(log_pi), (dist_params, log_pi, state)

    objective = Imitation(make_policy(W1), optax.sgd(0.5))
    losses = [float(objective.update(batch(), ADV)["Imitation/loss"]) for _ in range(5)]
    np.testing.assert_allclose(losses[0], -np.mean(np.log(softmax(S @ W1))[ROWS, A]), rtol=1e-4)
    assert losses == sorted(losses, reverse=True)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("adv", "error", "message"),
    [
        (None, TypeError, "VanillaPG: Adv must be a vector of advantages"),
        (np.ones(3), ValueError, r"VanillaPG: Adv must have the shape of Rn, \(5,\); got \(3,\)"),
        (np.ones((B, 1)), ValueError, r"VanillaPG: Adv must have the shape of Rn, \(5,\); got \(5, 1\)"),
        (jnp.ones(3), ValueError, "VanillaPG: Adv must have the shape of Rn"),
        (np.array([1, 2, np.nan, 4, 5]), ValueError, "VanillaPG: Adv must be finite"),
        (np.array([1, 2, np.inf, 4, 5]), ValueError, "VanillaPG: Adv must be finite"),
    ],
)
def test_bad_advantages_are_refused_and_nothing_is_trained(adv, error, message):
    objective = VanillaPG(make_policy(W1), optax.sgd(0.5))
    with pytest.raises(error, match=message):
        objective.update(batch(), adv)
    np.testing.assert_array_equal(weight_of(objective.pi), W1)


def test_bad_batches_are_refused_and_nothing_is_trained():
    objective = VanillaPG(make_policy(W1), optax.sgd(0.5))
    for name, bad in (("S", np.full_like(S, np.nan)), ("logP", np.full(B, np.nan)), ("A", np.full(B, ACTIONS))):
        with pytest.raises(ValueError, match=rf"VanillaPG: batch\.{name} "):
            objective.update(with_field(name, bad), ADV)
    np.testing.assert_array_equal(weight_of(objective.pi), W1)


def test_nan_advantages_on_the_device_are_caught_by_the_step():  # F48
    objective = VanillaPG(make_policy(W1), optax.sgd(0.5))
    objective.update(batch(), jnp.full(B, jnp.nan))
    np.testing.assert_array_equal(weight_of(objective.pi), W1)
    with pytest.raises(NonFiniteError, match="VanillaPG: step 1"):
        objective.update(batch(), ADV)
    objective.update(batch(), ADV.astype(np.float64).tolist())
    assert not np.array_equal(weight_of(objective.pi), W1)


def test_only_policies_with_weights_of_their_own_are_trained():
    q = make_q(W1)
    for pi in (q, triax.EpsilonGreedy(q), triax.BoltzmannPolicy(q), triax.RandomPolicy(DISCRETE), None):
        with pytest.raises(TypeError, match=f"VanillaPG: pi must be a Policy; got {type(pi).__name__}"):
            VanillaPG(pi)


def test_a_regularizer_must_be_one_and_live_in_the_spaces_of_the_policy():
    with pytest.raises(TypeError):
        VanillaPG(make_policy(W1), regularizer=make_policy(W1))
    other = EntropyRegularizer(make_real_policy(normal(STATE, 2)))
    with pytest.raises(TypeError, match=r"VanillaPG: regularizer\.f must have the action_space of pi"):
        VanillaPG(make_policy(W1), regularizer=other)
    pi = make_policy(W1)
    regularizer = EntropyRegularizer(pi)
    assert VanillaPG(pi, regularizer=regularizer).regularizer is regularizer


@pytest.mark.parametrize("cls", [VanillaPG, PPOClip])
@pytest.mark.parametrize("method", ["update", "grads_and_metrics"])
def test_a_call_without_advantages_names_the_objective_and_what_gives_them(cls, method):
    told = rf"{cls.__name__}: Adv must be .*got None. Try Adv = simple_td.plain_td_error\(batch\)"
    with pytest.raises(TypeError, match=told):
        getattr(cls(make_policy(W1)), method)(batch())


def test_the_advantages_that_are_suggested_train_the_objective():
    simple_td = triax.td_learning.SimpleTD(make_v(W1[:, 0]))
    before = weight_of(pi := make_policy(W1)).copy()
    VanillaPG(pi, optax.sgd(0.5)).update(batch(), simple_td.plain_td_error(batch()))
    assert np.any(weight_of(pi) != before)
