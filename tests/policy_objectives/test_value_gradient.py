"""Objectives that climb critics: gradients by hand, critics as constants in evaluation mode."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from gymnasium.spaces import Box

import triax
from linear_functions import (
    ACTIONS,
    ATOMS,
    BINS,
    DISCRETE,
    OBSERVATIONS,
    REALS,
    STATE,
    B,
    Linear,
    OfPair,
    OfState,
    S,
    Tree,
    TreeOfPair,
    W,
    as_logits,
    as_normal,
    batch,
    make_binned_q,
    make_policy,
    make_q,
    make_real_policy,
    make_real_q,
    make_v,
    normal,
    real_batch,
    weight_of,
)
from triax.losses.value_transforms import LogTransform
from triax.policy_objectives import DeterministicPG, SoftPG
from triax.proba_dists import NormalDist
from triax.td_learning import QLearning

R1 = normal(STATE, 2)
Q1, Q2 = normal(STATE + 2), normal(STATE + 2)


def critic(q, actions):
    return jnp.concatenate([S, jnp.tanh(actions)], axis=-1) @ q


def step_of(objective, w, value, transitions=None):
    """Check one SGD step up the weighted mean of ``value(w)``."""
    expected, gradient = jax.value_and_grad(lambda w: -jnp.sum(W * value(w)) / B)(w)
    metrics = objective.update(real_batch() if transitions is None else transitions)
    np.testing.assert_allclose(weight_of(objective.pi), w - 0.5 * gradient, rtol=5e-4, atol=2e-6)
    np.testing.assert_allclose(metrics[f"{type(objective).__name__}/loss"], expected, rtol=1e-4)


def certain_policy(w):
    """Its sample is its mode."""
    dist = NormalDist(REALS.action_space, clip_logvar=(-50.0, 20.0))
    func = Tree(OfState(w), lambda mu: {"mu": mu, "logvar": jnp.full_like(mu, -40.0)})
    return triax.Policy(func, REALS, proba_dist=dist, random_seed=0)


def test_the_deterministic_policy_gradient():
    q = make_real_q(Q1)
    step_of(DeterministicPG(make_real_policy(R1), q, optax.sgd(0.5)), R1, lambda w: critic(Q1, S @ w))
    np.testing.assert_array_equal(weight_of(q), Q1)  # the critic is a constant


def test_the_soft_policy_gradient_climbs_the_smaller_of_two_critics():
    objective = SoftPG(certain_policy(R1), [make_real_q(Q1), make_real_q(Q2)], optax.sgd(0.5))
    step_of(objective, R1, lambda w: jnp.minimum(critic(Q1, S @ w), critic(Q2, S @ w)))


def test_the_soft_policy_gradient_passes_through_the_sample():
    """Of a critic that is quadratic in the action, the mean gradient in a scale is known: d E[a^2] = 2 sigma."""

    class Square(Linear):
        def __call__(self, S, A, is_training):
            return jnp.sum(A**2, axis=-1) * self.w[...]

    class Scale(Linear):
        def __call__(self, S, is_training):
            logvar = jnp.broadcast_to(self.w[...], (len(S), 2))
            return {"mu": jnp.zeros_like(logvar), "logvar": logvar}

    pi = triax.Policy(Scale(np.float32(0.6)), REALS, random_seed=0)
    objective = SoftPG(pi, [triax.Q(Square(np.float32(1.0)), REALS)])
    many = real_batch_of(200)
    grads = [weight_of(objective.grads_and_metrics(many)[0]) for _ in range(100)]
    np.testing.assert_allclose(np.mean(grads), -2 * np.exp(0.6), rtol=0.02)
    assert np.std(grads) > 0


def real_batch_of(size):
    rng = np.random.default_rng(0)
    states = rng.normal(size=(size, STATE)).astype(np.float32)
    zeros = np.zeros(size)
    return triax.reward_tracing.TransitionBatch(states, np.zeros((size, 2)), zeros, zeros, zeros, states)


def test_modes_of_discrete_policies_are_relaxed():
    """The relaxed one-hot mode is softmax(log p / tau), tau = 0.2."""
    w, q_w = normal(STATE, ACTIONS), normal(STATE + ACTIONS)

    def value(w):
        mode = jax.nn.softmax(jax.nn.log_softmax(S @ w) / 0.2)
        return jnp.concatenate([S, jnp.tanh(mode)], axis=-1) @ q_w

    objective = DeterministicPG(make_policy(w), triax.Q(OfPair(q_w), DISCRETE), optax.sgd(0.5))
    step_of(objective, w, value, batch())


@pytest.mark.parametrize("kind", ["bins", "quantiles"])
def test_distributions_enter_through_their_mean(kind):
    q_w = normal(STATE + 2, BINS)

    def output(actions):
        return jnp.concatenate([S, jnp.tanh(actions)], axis=-1) @ q_w

    if kind == "bins":
        q = triax.StochasticQ(TreeOfPair(OfPair(q_w), as_logits), REALS, (-3.0, 3.0), BINS)
        mean = lambda x: jax.nn.softmax(x) @ ATOMS.astype(np.float32)  # noqa: E731
    else:
        q = triax.StochasticQ(
            TreeOfPair(OfPair(q_w), lambda x: {"values": x, "quantile_fractions": jnp.zeros_like(x)}),
            REALS,
            num_bins=BINS,
        )
        mean = lambda x: x.mean(-1)  # noqa: E731
    objective = DeterministicPG(make_real_policy(R1), q, optax.sgd(0.5))
    step_of(objective, R1, lambda w: mean(output(S @ w)))


def test_values_are_climbed_in_original_units():
    transform = LogTransform(2.0)
    objective = DeterministicPG(make_real_policy(R1), make_real_q(Q1, value_transform=transform), optax.sgd(0.5))
    step_of(objective, R1, lambda w: transform.inverse_func(critic(Q1, S @ w)))


def test_a_look_ahead_may_be_the_critic():
    v_w, p_w, r_w = normal(STATE), normal(STATE + 2, STATE), normal(STATE + 2)
    v = make_v(v_w)
    q = triax.SuccessorStateQ(
        v, triax.TransitionModel(OfPair(p_w), REALS), triax.RewardFunction(OfPair(r_w), REALS), gamma=0.8
    )
    objective = DeterministicPG(make_real_policy(R1), q, optax.sgd(0.5))

    def value(w):
        return critic(r_w, S @ w) + 0.8 * critic(p_w, S @ w) @ v_w

    step_of(objective, R1, value)
    ((params, _),) = objective.hyperparams["q"]
    assert params.keys() == {"v", "p", "r", "gamma"}


# ------------------------------------------------------------------ critics in evaluation mode


class NoisyCritic(nnx.Module):
    def __init__(self, w, rngs):
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.norm = nnx.BatchNorm(STATE, use_scale=False, use_bias=False, rngs=rngs)
        self.w = nnx.Param(jnp.asarray(w))

    def __call__(self, S, A, is_training):
        return jnp.concatenate([self.dropout(self.norm(S)), jnp.tanh(A)], axis=-1) @ self.w[...]


@pytest.mark.parametrize("Objective", [DeterministicPG, SoftPG])
def test_critics_run_in_evaluation_mode_and_keep_their_state(Objective):  # F63
    q = triax.Q(lambda rngs: NoisyCritic(Q1, rngs), REALS, random_seed=0)
    state = jax.tree.map(np.array, q.function_state)
    objective = Objective(certain_policy(R1), q if Objective is DeterministicPG else [q], optax.sgd(0.5))

    def value(w):
        return jnp.concatenate([S / np.sqrt(1 + 1e-5), jnp.tanh(S @ w)], axis=-1) @ Q1

    step_of(objective, R1, value)
    jax.tree.map(np.testing.assert_array_equal, q.function_state, state)


def test_a_critic_may_be_trained_between_updates():
    """Its weights are read when they are needed, and arrays that were handed out stay good."""
    pi = make_real_policy(R1)
    q = make_real_q(Q1)
    objective = DeterministicPG(pi, q, optax.sgd(0.0))
    q_learning = QLearning(q, pi, optimizer=optax.sgd(0.1))
    handed_out = objective.hyperparams["q"]
    for _ in range(3):
        q_learning.update(real_batch())
        loss = objective.update(real_batch())["DeterministicPG/loss"]
        np.testing.assert_allclose(loss, -np.mean(W * critic(weight_of(q), S @ R1)), rtol=1e-4)
    np.testing.assert_array_equal(handed_out[0][0]["w"], Q1)


def test_the_advantage_is_ignored():
    objective = DeterministicPG(make_real_policy(R1), make_real_q(Q1), optax.sgd(0.0))
    with_advantage = objective.update(real_batch(), np.full(B, np.nan))["DeterministicPG/loss"]
    np.testing.assert_array_equal(with_advantage, objective.update(real_batch())["DeterministicPG/loss"])
    grads, state, metrics = objective.grads_and_metrics(real_batch())
    assert (weight_of(grads).shape, state) == (R1.shape, {})
    assert "DeterministicPG/kl_div_old" in metrics


# ------------------------------------------------------------------ raw actions

BOUNDED = type("Env", (), {"observation_space": OBSERVATIONS, "action_space": Box(-2.0, 2.0, (2,), np.float32)})


def test_critic_and_policy_may_share_the_raw_action_space():
    pi = triax.Policy(Tree(OfState(R1), as_normal), BOUNDED, random_seed=0)
    q = triax.Q(OfPair(Q1), BOUNDED, action_preprocessor=pi.proba_dist.preprocess_variate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective = DeterministicPG(pi, q, optax.sgd(0.5))
    step_of(objective, R1, lambda w: critic(Q1, S @ w), real_batch(A=np.zeros((B, 2))))


@pytest.mark.parametrize("make", [DeterministicPG, lambda pi, q, o: SoftPG(pi, [q], o)])
def test_actions_are_decoded_for_a_critic_that_sees_them_otherwise_with_a_warning(make):  # F64
    pi = triax.Policy(Tree(OfState(R1), as_normal), BOUNDED, random_seed=0)
    q = triax.Q(OfPair(Q1), BOUNDED)
    with pytest.warns(UserWarning, match=r"PG: q\.action_preprocessor differs.*preprocess_variate"):
        objective = make(pi, q, optax.sgd(0.5))
    if make is DeterministicPG:
        step_of(objective, R1, lambda w: critic(Q1, -2 + 4 * jax.nn.sigmoid(S @ w)), real_batch(A=np.zeros((B, 2))))


def test_integer_actions_that_would_stop_the_gradient_are_refused():
    env = type("Env", (), {"observation_space": OBSERVATIONS, "action_space": Box(0, 9, (2,), np.int64)})
    pi = triax.Policy(Tree(OfState(R1), as_normal), env)
    q = triax.Q(OfPair(Q1), env)
    with pytest.raises(TypeError, match="DeterministicPG: no gradient passes to pi through the integer actions"):
        DeterministicPG(pi, q)


# ------------------------------------------------------------------ refusals


def test_critics_of_another_kind_are_refused():  # F64
    pi, w = make_real_policy(R1), normal(STATE, ACTIONS)
    for bad, found in ((make_v(normal(STATE)), "V"), (pi, "Policy"), (None, "NoneType"), ([make_real_q(Q1)], "list")):
        with pytest.raises(TypeError, match=f"DeterministicPG: q_targ must be a q-function; got {found}"):
            DeterministicPG(pi, bad)
        with pytest.raises(TypeError, match=f"SoftPG: q_targ_list must be a q-function; got {found}"):
            SoftPG(pi, [make_real_q(Q1), bad])
    for q in (make_q(w), make_binned_q(normal(STATE, ACTIONS * BINS))):
        with pytest.raises(TypeError, match=r"DeterministicPG: q_targ must be of type 1"):
            DeterministicPG(make_policy(w), q)
        with pytest.raises(TypeError, match=r"SoftPG: q_targ_list must be of type 1"):
            SoftPG(make_policy(w), [q])


def test_a_list_of_critics_must_be_one_and_not_empty():
    pi, q = make_real_policy(R1), make_real_q(Q1)
    with pytest.raises(TypeError, match="SoftPG: q_targ_list must be a list or tuple; got Q"):
        SoftPG(pi, q)
    with pytest.raises(ValueError, match="SoftPG: q_targ_list must not be empty"):
        SoftPG(pi, [])
    assert SoftPG(pi, (q,)).q_targ_list == [q]
    assert DeterministicPG(pi, q).q_targ is q


def test_critics_in_other_spaces_are_refused():
    other = type("Env", (), {"observation_space": Box(0, 1, (STATE,)), "action_space": REALS.action_space})
    with pytest.raises(TypeError, match="DeterministicPG: q observes"):
        DeterministicPG(make_real_policy(R1), triax.Q(OfPair(Q1), other))
    with pytest.raises(TypeError, match="DeterministicPG: q acts in"):
        DeterministicPG(make_policy(normal(STATE, ACTIONS)), make_real_q(Q1))
