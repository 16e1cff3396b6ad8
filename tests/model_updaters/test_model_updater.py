"""Models learn what was observed: gradients by hand for each kind, likelihoods, exact probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium import spaces

import triax
from compilations import counted_compilations
from linear_functions import (
    ACTIONS,
    ATOMS,
    BINS,
    DISCRETE,
    FRACTIONS,
    RN,
    ROWS,
    S_NEXT,
    STATE,
    A,
    B,
    Linear,
    OfPair,
    OfState,
    S,
    Tree,
    TreeOfPair,
    W,
    as_bins,
    as_quantiles,
    batch,
    entropy_of,
    half_squares,
    make_policy,
    make_q,
    normal,
    pick,
    softmax,
    weight_of,
    with_field,
)
from tabular import FrozenLake
from triax.core.errors import NonFiniteError
from triax.losses.value_losses import huber, mse
from triax.losses.value_transforms import LogTransform
from triax.model_updaters import ModelUpdater
from triax.regularizers import EntropyRegularizer

ONE_HOT = np.eye(ACTIONS, dtype=np.float32)[A]
PAIRS = np.concatenate([S, np.tanh(ONE_HOT)], axis=1)
SGD = optax.sgd(0.5)


def check(model, loss, *, regularizer=None, made=None, **options):
    """One SGD step down ``loss(w)``, and what it reports."""
    updater = ModelUpdater(model, SGD, regularizer=regularizer, **options)
    w = weight_of(model)
    value, gradient = jax.jit(jax.value_and_grad(loss))(w)
    metrics = updater.update(batch() if made is None else made)
    np.testing.assert_allclose(weight_of(model), w - 0.5 * gradient, rtol=5e-4, atol=2e-6)
    np.testing.assert_allclose(metrics["ModelUpdater/loss"], value, rtol=1e-4)
    np.testing.assert_allclose(metrics["ModelUpdater/grads_norm"], np.linalg.norm(gradient), rtol=5e-4)
    np.testing.assert_allclose(metrics["ModelUpdater/grads_max"], np.abs(gradient).max(), rtol=5e-4)
    return metrics


def test_a_gradient_by_hand_is_that_of_half_squares():
    """The helper itself: mean of W times half the square."""
    np.testing.assert_allclose(half_squares(RN, 0), np.mean(W * RN**2 / 2), rtol=1e-5)


# ------------------------------------------------------------------ rewards


def test_a_reward_of_state_and_action_regresses():
    model = triax.RewardFunction(OfPair(normal(STATE + ACTIONS)), DISCRETE, random_seed=0)
    metrics = check(model, lambda w: half_squares(RN, PAIRS @ w), loss_function=mse)
    assert sorted(metrics) == sorted(
        f"ModelUpdater/{name}" for name in ("loss", "loss_bare", "grads_max", "grads_norm")
    )


def test_a_reward_of_all_actions_regresses_at_the_action_taken():
    model = triax.RewardFunction(OfState(normal(STATE, ACTIONS)), DISCRETE, random_seed=0)
    check(model, lambda w: half_squares(RN, pick(S @ w, A)), loss_function=mse)


def test_the_default_loss_is_huber():
    model = triax.RewardFunction(OfPair(normal(STATE + ACTIONS)), DISCRETE, random_seed=0)

    def loss(w):
        error = jnp.abs(3 * RN - PAIRS @ w)
        return jnp.sum(W * jnp.where(error <= 1, 0.5 * error**2, error - 0.5)) / B

    check(model, loss, made=batch(Rn=3 * RN))
    assert ModelUpdater(model).loss_function is huber


def test_a_transformed_reward_regresses_to_the_transformed_reward():
    transform = LogTransform(2.0)
    model = triax.RewardFunction(OfPair(normal(STATE + ACTIONS)), DISCRETE, value_transform=transform, random_seed=0)
    target = 2 * np.sign(RN) * np.log1p(np.abs(RN) / 2)
    check(model, lambda w: half_squares(target, PAIRS @ w), loss_function=mse)


def reward_on_bins(reward):
    """The reward's mass, shared between the two nearest atoms."""
    width, mass = ATOMS[1] - ATOMS[0], np.zeros((B, BINS))
    for i, r in enumerate(np.clip(reward, ATOMS[0], ATOMS[-1])):
        b = (r - ATOMS[0]) / width
        low, high = int(np.floor(b)), int(np.ceil(b))
        mass[i, low] += 1 if low == high else high - b
        mass[i, high] += 0 if low == high else b - low
    return mass


@pytest.mark.parametrize("modeltype", [1, 2])
def test_binned_rewards_maximise_the_likelihood_of_the_reward(modeltype):  # F65
    if modeltype == 1:
        func = TreeOfPair(OfPair(normal(STATE + ACTIONS, BINS)), lambda x: {"logits": x})
        logits = lambda w: PAIRS @ w  # noqa: E731
    else:
        func = Tree(OfState(normal(STATE, ACTIONS * BINS)), as_bins)
        logits = lambda w: (S @ w).reshape(B, ACTIONS, BINS)[ROWS, A]  # noqa: E731
    model = triax.StochasticRewardFunction(func, DISCRETE, (-3.0, 3.0), BINS, random_seed=0)
    assert model.modeltype == modeltype
    target = reward_on_bins(RN)

    def loss(w):
        return -jnp.sum(W[:, None] * target * jax.nn.log_softmax(logits(w))) / B

    check(model, loss)


def test_quantile_rewards_regress_their_quantiles():  # F65
    func = Tree(OfState(normal(STATE, ACTIONS * BINS)), as_quantiles)
    model = triax.StochasticRewardFunction(func, DISCRETE, num_bins=BINS, random_seed=0)

    def loss(w):
        error = RN[:, None] - (S @ w).reshape(B, ACTIONS, BINS)[ROWS, A]
        size = jnp.abs(error)
        losses = jnp.abs(FRACTIONS - (error < 0)) * jnp.where(size <= 1, 0.5 * error**2, size - 0.5)
        return jnp.sum(W * jnp.mean(losses * BINS, axis=-1)) / B  # each of the target's equal quantiles counts

    check(model, loss)


def test_as_many_bins_as_rows_are_no_trap():  # F65
    """Rows and bins of one number must not be taken for each other."""
    func = TreeOfPair(OfPair(normal(STATE + ACTIONS, B)), lambda x: {"logits": x})
    model = triax.StochasticRewardFunction(func, DISCRETE, (-2.0, 2.0), B, random_seed=0)
    updater = ModelUpdater(model, optax.adam(0.05))
    made = batch(W=None, Rn=np.array([-1.6, -0.8, 0.0, 0.8, 1.6]))
    losses = [float(updater.update(made)["ModelUpdater/loss"]) for _ in range(200)]
    assert losses[-1] < 0.2 < losses[0]


# ------------------------------------------------------------------ next states


def test_a_next_state_regresses_over_components():
    model = triax.TransitionModel(OfPair(normal(STATE + ACTIONS, STATE)), DISCRETE, random_seed=0)

    def loss(w):
        return jnp.mean(jnp.stack([half_squares(S_NEXT[:, k], PAIRS @ w[:, k]) for k in range(STATE)]))

    check(model, loss, loss_function=mse)


def test_next_states_of_all_actions_regress_at_the_action_taken():
    func = Tree(OfState(normal(STATE, ACTIONS * STATE)), lambda x: x.reshape(-1, ACTIONS, STATE))
    model = triax.TransitionModel(func, DISCRETE, random_seed=0)

    def loss(w):
        predicted = (S @ w).reshape(B, ACTIONS, STATE)[ROWS, A]
        return jnp.sum(W[:, None] * 0.5 * (S_NEXT - predicted) ** 2) / B / STATE

    check(model, loss, loss_function=mse)


class NextNormal(Linear):
    """Unit variance."""

    def __call__(self, S, A, is_training):
        mu = jnp.concatenate([S, jnp.tanh(A)], axis=-1) @ self.w[...]
        return {"mu": mu, "logvar": jnp.zeros_like(mu)}


def test_a_stochastic_next_state_maximises_its_likelihood():  # F65
    model = triax.StochasticTransitionModel(NextNormal(normal(STATE + ACTIONS, STATE)), DISCRETE, random_seed=0)

    def loss(w):
        log_density = -0.5 * jnp.sum((S_NEXT - PAIRS @ w) ** 2 + jnp.log(2 * jnp.pi), axis=-1)
        return -jnp.sum(W * log_density) / B

    check(model, loss)


def test_stochastic_next_states_of_all_actions_maximise_the_likelihood_at_the_action_taken():
    def make(x):
        mu = x.reshape(-1, ACTIONS, STATE)
        return {"mu": mu, "logvar": jnp.zeros_like(mu)}

    func = Tree(OfState(normal(STATE, ACTIONS * STATE)), make)
    model = triax.StochasticTransitionModel(func, DISCRETE, random_seed=0)

    def loss(w):
        mu = (S @ w).reshape(B, ACTIONS, STATE)[ROWS, A]
        return jnp.sum(W[:, None] * 0.5 * ((S_NEXT - mu) ** 2 + jnp.log(2 * jnp.pi))) / B

    check(model, loss)


COMPOSITE = type(
    "Env",
    (),
    {
        "observation_space": spaces.Dict(x=spaces.Box(-np.inf, np.inf, (2,), np.float32), y=spaces.Discrete(3)),
        "action_space": spaces.Discrete(2),
    },
)
X, Y = normal(B, 2), np.array([0, 2, 1, 1, 0])
X_NEXT, Y_NEXT = normal(B, 2), np.array([1, 1, 2, 0, 0])
COMPOSITE_PAIRS = np.concatenate([X, np.eye(3)[Y], np.eye(2)[A % 2]], axis=1).astype(np.float32)


def composite_batch():
    return batch(S={"x": X, "y": Y}, S_next={"x": X_NEXT, "y": Y_NEXT}, A=A % 2, A_next=None, logP_next=None)


class OfComposite(Linear):
    stochastic = False

    def __call__(self, S, A, is_training):
        out = jnp.concatenate([S["x"], S["y"], A], axis=-1) @ self.w[...]
        x, y = out[:, :2], out[:, 2:]
        return (
            {"x": {"mu": x, "logvar": jnp.zeros_like(x)}, "y": {"logits": y}} if self.stochastic else {"x": x, "y": y}
        )


class StochasticOfComposite(OfComposite):
    stochastic = True


def test_composite_next_states_regress_leaf_by_leaf():  # F65
    model = triax.TransitionModel(OfComposite(normal(7, 5)), COMPOSITE, random_seed=0)

    def loss(w):
        out = COMPOSITE_PAIRS @ w
        x = jnp.sum(W[:, None] * 0.5 * (X_NEXT - out[:, :2]) ** 2) / B / 2
        y = jnp.sum(W[:, None] * 0.5 * (np.eye(3)[Y_NEXT] - out[:, 2:]) ** 2) / B / 3
        return x + y

    check(model, loss, loss_function=mse, made=composite_batch())


def test_composite_stochastic_next_states_maximise_the_joint_likelihood():  # F65
    model = triax.StochasticTransitionModel(StochasticOfComposite(normal(7, 5)), COMPOSITE, random_seed=0)

    def loss(w):
        out = COMPOSITE_PAIRS @ w
        x = -0.5 * jnp.sum((X_NEXT - out[:, :2]) ** 2 + jnp.log(2 * jnp.pi), axis=-1)
        y = jax.nn.log_softmax(out[:, 2:])[ROWS, Y_NEXT]
        return -jnp.sum(W * (x + y)) / B

    check(model, loss, made=composite_batch())


class Tabular(Linear):
    """One row of logits for each state and action."""

    def __call__(self, S, A, is_training):
        pair = jnp.einsum("bs,ba->bsa", S, A).reshape(len(S), -1)
        return {"logits": pair @ self.w[...]}


def test_the_model_of_frozen_lake_converges_to_its_exact_probabilities():
    lake = FrozenLake(is_slippery=True)
    n, m = int(lake.num_states), int(lake.num_actions)
    p = triax.StochasticTransitionModel(Tabular(np.zeros((n * m, n), np.float32)), lake.spaces, random_seed=0)
    updater, transitions = ModelUpdater(p, optax.adam(0.3)), lake.transitions()
    losses = [float(updater.update(transitions)["ModelUpdater/loss"]) for _ in range(300)]
    exact = np.zeros((n * m, n))
    np.add.at(exact, (lake.s * m + lake.a, lake.s_next), lake.p)
    np.testing.assert_allclose(softmax(weight_of(p)), exact, atol=0.01)
    assert losses[-1] < losses[0]


# ------------------------------------------------------------------ regularizer, weights, changes


def stochastic_model():
    return triax.StochasticTransitionModel(Tabular(normal(6, 3)), TABULAR, random_seed=0)


TABULAR = type("Env", (), {"observation_space": spaces.Discrete(3), "action_space": spaces.Discrete(2)})
STATES, ACTS, NEXT = np.array([0, 1, 2, 2, 1]), np.array([1, 0, 1, 0, 1]), np.array([2, 2, 0, 1, 1])


def tabular_batch(**fields):
    return batch(**({"S": STATES, "A": ACTS, "S_next": NEXT, "A_next": None, "logP_next": None} | fields))


def test_a_regularizer_of_the_model_itself_is_added():
    model = stochastic_model()
    rows = STATES * 2 + ACTS

    def loss(w):
        log_p = jax.nn.log_softmax(w[rows])
        return jnp.sum(W * (-log_p[ROWS, NEXT] + 0.3 * jnp.sum(jnp.exp(log_p) * log_p, axis=-1))) / B

    entropy = entropy_of(weight_of(model)[rows]).mean()
    metrics = check(model, loss, regularizer=EntropyRegularizer(model, beta=0.3), made=tabular_batch())
    np.testing.assert_allclose(metrics["EntropyRegularizer/entropy"], entropy, rtol=1e-3)  # without prefix
    assert metrics["ModelUpdater/loss"] < metrics["ModelUpdater/loss_bare"]


def test_numbers_and_loss_functions_take_effect():  # F52
    model = stochastic_model()
    regularizer = EntropyRegularizer(model, beta=0.3)
    updater = ModelUpdater(model, optax.sgd(0.0), regularizer=regularizer)
    updater.update(tabular_batch())
    with counted_compilations() as count:
        regularizer.beta = 0.0
        metrics = updater.update(tabular_batch())
    assert count.compilations == 0
    np.testing.assert_array_equal(metrics["ModelUpdater/loss"], metrics["ModelUpdater/loss_bare"])
    assert updater.hyperparams == {"regularizer": regularizer.hyperparams}
    reward = triax.RewardFunction(OfPair(normal(STATE + ACTIONS)), DISCRETE, random_seed=0)
    updater = ModelUpdater(reward, optax.sgd(0.0))
    updater.update(batch())
    updater.loss_function = mse
    loss = updater.update(batch())["ModelUpdater/loss"]
    np.testing.assert_allclose(loss, half_squares(RN, PAIRS @ weight_of(reward)), rtol=1e-4)


def test_small_weights_pass_and_bounds_can_be_set():  # F20
    updater = ModelUpdater(stochastic_model(), optax.sgd(0.0))
    full = updater.update(tabular_batch(W=np.ones(B)))["ModelUpdater/loss"]
    np.testing.assert_allclose(
        updater.update(tabular_batch(W=np.full(B, 1e-3)))["ModelUpdater/loss"], 1e-3 * full, rtol=1e-4
    )
    updater.weight_clip = (0.5, 10.0)
    np.testing.assert_allclose(
        updater.update(tabular_batch(W=np.full(B, 1e-3)))["ModelUpdater/loss"], 0.5 * full, rtol=1e-4
    )


def test_gradients_can_be_computed_here_and_applied_there():
    w = normal(STATE + ACTIONS)
    one, other = (ModelUpdater(triax.RewardFunction(OfPair(w), DISCRETE), SGD) for _ in range(2))
    grads, state, metrics = one.grads_and_metrics(batch())
    np.testing.assert_array_equal(weight_of(one.model), w)
    one.apply_grads(grads, state)
    assert metrics.keys() == other.update(batch()).keys()
    np.testing.assert_allclose(weight_of(one.model), weight_of(other.model), rtol=1e-5)


# ------------------------------------------------------------------ refusals


def test_bad_batches_are_refused_and_nothing_is_trained():
    w = normal(STATE + ACTIONS)
    updater = ModelUpdater(triax.RewardFunction(OfPair(w), DISCRETE), SGD)
    for name, bad in (("S", np.full_like(S, np.nan)), ("Rn", np.full(B, np.nan)), ("A", np.full(B, ACTIONS))):
        with pytest.raises(ValueError, match=rf"ModelUpdater: batch\.{name} "):
            updater.update(with_field(name, bad))
    updater.update(with_field("Rn", jnp.full(B, jnp.nan)))
    np.testing.assert_array_equal(weight_of(updater.model), w)
    with pytest.raises(NonFiniteError, match=r"ModelUpdater: step 1 .*params\['w'\]"):
        updater.update(batch())


def test_only_models_are_trained():
    for model in (make_q(normal(STATE, ACTIONS)), make_policy(normal(STATE, ACTIONS)), None):
        with pytest.raises(TypeError, match="ModelUpdater: model must be a transition model or a reward function"):
            ModelUpdater(model)


def test_losses_and_regularizers_belong_to_their_kind_of_model():
    reward, model = triax.RewardFunction(OfPair(normal(STATE + ACTIONS)), DISCRETE), stochastic_model()
    with pytest.raises(TypeError, match="ModelUpdater: a stochastic model is trained by likelihood"):
        ModelUpdater(model, loss_function=mse)
    updater = ModelUpdater(model)
    with pytest.raises(TypeError, match="ModelUpdater: a stochastic model is trained by likelihood"):
        updater.loss_function = mse
    with pytest.raises(TypeError, match=r"ModelUpdater: regularizer must be one of the \(stochastic\) model itself"):
        ModelUpdater(reward, regularizer=EntropyRegularizer(model))  # F65
    with pytest.raises(TypeError, match=r"ModelUpdater: regularizer must be one of the \(stochastic\) model itself"):
        ModelUpdater(stochastic_model(), regularizer=EntropyRegularizer(model))
    with pytest.raises(TypeError):
        ModelUpdater(reward, loss_function=3)
    assert ModelUpdater(model).regularizer is None
