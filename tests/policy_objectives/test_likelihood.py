"""Objectives on the likelihood of actions: gradients by hand, and the ratio of an unchanged policy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from gymnasium import spaces

import triax
from compilations import counted_compilations
from linear_functions import (
    ACTIONS,
    REAL_A,
    ROWS,
    STATE,
    A,
    B,
    S,
    W,
    batch,
    make_policy,
    make_real_policy,
    normal,
    real_batch,
    weight_of,
)
from triax.policy_objectives import PPOClip, VanillaPG
from triax.reward_tracing import TransitionBatch

W1, R1 = normal(STATE, ACTIONS), normal(STATE, 2)
ADV = np.array([1.5, -2.0, 0.5, -0.3, 2.5], np.float32)


def log_pi(w):
    return jax.nn.log_softmax(S @ w, axis=-1)[ROWS, A]


def log_density(w):
    """Of a normal distribution with unit variance."""
    return -0.5 * jnp.sum((REAL_A - S @ w) ** 2 + jnp.log(2 * jnp.pi), axis=-1)


KINDS = {
    "discrete": (make_policy, W1, log_pi, batch),
    "real": (make_real_policy, R1, log_density, real_batch),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_gradient(kind):
    make, w, log_likelihood, make_batch = KINDS[kind]
    objective = VanillaPG(make(w), optax.sgd(0.5))
    logP = np.array([-1.0, -0.5, -2.0, -1.0, -0.1], np.float32)
    metrics = objective.update(make_batch(logP=logP), ADV)
    value, gradient = jax.value_and_grad(lambda w: -jnp.sum(W * ADV * log_likelihood(w)) / B)(w)
    np.testing.assert_allclose(weight_of(objective.pi), w - 0.5 * gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(metrics["VanillaPG/loss"], value, rtol=1e-4)
    np.testing.assert_allclose(metrics["VanillaPG/loss_bare"], value, rtol=1e-4)
    np.testing.assert_allclose(metrics["VanillaPG/grads_norm"], np.linalg.norm(gradient), rtol=1e-4)
    np.testing.assert_allclose(metrics["VanillaPG/grads_max"], np.abs(gradient).max(), rtol=1e-4)
    divergence = np.mean(logP - log_likelihood(w))  # F66: an average over actions that were drawn, unweighted
    np.testing.assert_allclose(metrics["VanillaPG/kl_div_old"], divergence, rtol=1e-4)


def surrogate(w, log_likelihood, logP, epsilon):
    """Schulman et al. 2017, eq. 7, weighted."""
    ratio = jnp.exp(log_likelihood(w) - logP)
    clipped = jnp.clip(ratio, 1 - epsilon, 1 + epsilon)
    return -jnp.sum(W * jnp.minimum(ratio * ADV, clipped * ADV)) / B


@pytest.mark.parametrize("kind", KINDS)
def test_the_clipped_surrogate_on_both_sides_of_the_clip(kind):
    """Ratios of 1.05 and 0.95 are free, of 1.6 and 0.5 clipped where the advantage rewards going on."""
    make, w, log_likelihood, make_batch = KINDS[kind]
    logP = np.asarray(log_likelihood(w) - np.log([1.6, 0.5, 0.5, 1.6, 1.05]), np.float32)
    objective = PPOClip(make(w), optax.sgd(0.5), epsilon=0.2)
    metrics = objective.update(make_batch(logP=logP), ADV)
    value, gradient = jax.value_and_grad(surrogate)(w, log_likelihood, logP, 0.2)
    np.testing.assert_allclose(weight_of(objective.pi), w - 0.5 * gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(metrics["PPOClip/loss"], value, rtol=1e-4)
    pairs = np.array([1.2 * ADV[0], 0.8 * ADV[1], 0.5 * ADV[2], 1.6 * ADV[3], 1.05 * ADV[4]])
    np.testing.assert_allclose(metrics["PPOClip/loss"], -np.mean(W * pairs), rtol=1e-4)


def test_only_samples_that_are_not_clipped_move_the_policy():
    logP = np.asarray(log_pi(W1) - np.log(1.6), np.float32)
    objective = PPOClip(make_policy(W1), optax.sgd(0.5))
    objective.update(batch(logP=logP), np.ones(B))
    np.testing.assert_array_equal(weight_of(objective.pi), W1)
    objective.update(batch(logP=logP), -np.ones(B))
    assert not np.allclose(weight_of(objective.pi), W1)


def test_a_ratio_beyond_float32_is_clipped_like_any_other():
    """Its gradient is 0, not 0 times infinity; where it is not clipped the step is left out."""
    logP = np.full(B, -200.0, np.float32)
    objective = PPOClip(make_policy(W1), optax.sgd(0.5))
    metrics = objective.update(batch(logP=logP), np.ones(B))
    np.testing.assert_allclose(metrics["PPOClip/loss"], -1.2 * np.mean(W), rtol=1e-5)
    objective.raise_if_not_finite()
    np.testing.assert_array_equal(weight_of(objective.pi), W1)
    objective.update(batch(logP=logP), -np.ones(B))
    with pytest.raises(RuntimeError, match="PPOClip: step 2"):
        objective.raise_if_not_finite()
    np.testing.assert_array_equal(weight_of(objective.pi), W1)


def test_epsilon_takes_effect_and_compiles_nothing():  # F52
    logP = np.asarray(log_pi(W1) - np.log([1.6, 0.5, 0.5, 1.6, 1.05]), np.float32)
    objective = PPOClip(make_policy(W1), optax.sgd(0.0))
    objective.update(batch(logP=logP), ADV)
    assert objective.hyperparams["epsilon"] == np.float32(0.2)
    objective.epsilon = 0.7
    with counted_compilations() as count:
        loss = float(objective.update(batch(logP=logP), ADV)["PPOClip/loss"])
    np.testing.assert_allclose(loss, surrogate(W1, log_pi, logP, 0.7), rtol=1e-4)
    assert count.compilations == 0


@pytest.mark.parametrize("call", ["update", "grads_and_metrics"])
def test_batches_without_propensities_are_refused_and_train_nothing(call):
    objective = PPOClip(make_policy(W1), optax.sgd(0.1))
    with pytest.raises(ValueError, match=r"PPOClip: every logP of the batch is 0, .*return_logp=True.*Nothing was"):
        getattr(objective, call)(batch(), ADV)
    np.testing.assert_array_equal(weight_of(objective.pi), W1)
    objective.update(batch(logP=np.full(B, -1.0)), ADV)
    assert PPOClip.REQUIRES_PROPENSITIES
    assert not VanillaPG.REQUIRES_PROPENSITIES


def test_propensities_of_zero_are_true_of_a_policy_that_is_certain():
    certain = np.zeros((STATE, ACTIONS), np.float32)
    certain[0, 0] = 1e3
    states = np.ones((B, STATE), np.float32)
    metrics = PPOClip(make_policy(certain)).update(batch(S=states, A=np.zeros(B, int)), ADV)
    np.testing.assert_allclose(metrics["PPOClip/kl_div_old"], 0.0, atol=1e-6)


# ------------------------------------------------------------------ pitfall 29


SPACES = {
    "Discrete with start": spaces.Discrete(3, start=-1),
    "MultiDiscrete": spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, 1], [-2, 0]]),
    "MultiBinary": spaces.MultiBinary((2, 2)),
    "bounded Box": spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([3.0, 1.0], np.float32)),
    "half-bounded Box": spaces.Box(np.array([0.0, -np.inf]), np.array([np.inf, 5.0]), dtype=np.float64),
    "unbounded Box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "integer Box": spaces.Box(0, 10, (2,), np.int64),
    "Tuple": spaces.Tuple((spaces.Discrete(2), spaces.Box(0.0, 1.0, (1,), np.float32))),
    "Dict": spaces.Dict(x=spaces.Discrete(2, start=5), y=spaces.Tuple((spaces.MultiBinary(2),))),
}


class AnyParams(nnx.Module):
    """Linear in the state, for the parameters of any distribution; wide enough to reach the bounds."""

    def __init__(self, dist):
        self.like = jax.eval_shape(lambda: dist.default_priors)
        sizes = [int(np.prod(leaf.shape[1:])) for leaf in jax.tree.leaves(self.like)]
        self.weights = nnx.List([nnx.Param(jnp.asarray(2 * normal(STATE, size))) for size in sizes])

    def __call__(self, S, is_training):
        leaves, structure = jax.tree.flatten(self.like)
        outputs = [(S @ w[...]).reshape(-1, *leaf.shape[1:]) for w, leaf in zip(self.weights, leaves, strict=True)]
        return jax.tree.unflatten(structure, outputs)


@pytest.mark.parametrize("name", SPACES)
def test_the_ratio_of_an_unchanged_policy_is_one(name):  # F28, F29
    env = batch_env(SPACES[name])
    pi = triax.Policy(AnyParams(triax.proba_dists.ProbaDist(SPACES[name])), env, random_seed=0)
    rng = np.random.default_rng(0)
    singles = []
    for _ in range(6):
        s = rng.normal(size=STATE).astype(np.float32)
        a, logp = pi(s, return_logp=True)
        singles.append(TransitionBatch.from_single(s, a, logp, 0.0, False, 0.9, s_next=s))
    made = jax.tree.map(lambda *leaves: np.concatenate(leaves), *singles)
    adv = rng.normal(size=6).astype(np.float32)
    metrics = PPOClip(pi, optax.sgd(0.1), epsilon=1e-6).update(made, adv)
    np.testing.assert_allclose(metrics["PPOClip/loss"], -adv.mean(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(metrics["PPOClip/kl_div_old"], 0, atol=1e-5)


def batch_env(action_space):
    class Env:
        observation_space = spaces.Box(-np.inf, np.inf, (STATE,), np.float32)

    Env.action_space = action_space
    return Env
