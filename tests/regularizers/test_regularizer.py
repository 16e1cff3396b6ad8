"""What regularizers share: functions of states, and of states and actions, in their own spaces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import triax
from linear_functions import (
    ACTIONS,
    BINS,
    DISCRETE,
    IN,
    OBSERVATIONS,
    ROWS,
    S_NEXT,
    STATE,
    A,
    B,
    Linear,
    OfState,
    S,
    Tree,
    TreeOfPair,
    as_logits,
    batch,
    entropy_of,
    make_binned_q,
    make_binned_v,
    make_policy,
    make_q,
    make_quantile_q,
    make_v,
    normal,
    softmax,
    weight_of,
)
from triax.regularizers import EntropyRegularizer, KLDivRegularizer, NStepEntropyRegularizer, Regularizer

KEY = jax.random.PRNGKey(0)


def evaluated(regularizer, made=None):
    f, made = regularizer.f, batch() if made is None else made
    return regularizer.batch_eval(f.params, regularizer.hyperparams, f.function_state, KEY, made)


class BinsOfPair(Linear):
    """Bilinear, type 1 of ``make_binned_q``."""

    def __call__(self, S, A, is_training):
        return jnp.einsum("bak,ba->bk", (S @ self.w[...]).reshape(len(S), ACTIONS, BINS), A)


def test_functions_of_state_and_action_are_evaluated_at_the_actions_taken():  # F58
    w = normal(STATE, ACTIONS * BINS)
    expected = -0.5 * entropy_of((S @ w).reshape(B, ACTIONS, BINS)[ROWS, A])
    type1 = triax.StochasticQ(TreeOfPair(BinsOfPair(w), as_logits), DISCRETE, (-3.0, 3.0), BINS)
    for f in (make_binned_q(w), type1):
        term, metrics = evaluated(EntropyRegularizer(f, beta=0.5))
        np.testing.assert_allclose(term, expected, rtol=1e-3)
        np.testing.assert_allclose(metrics["EntropyRegularizer/entropy"], np.mean(expected / -0.5), rtol=1e-3)
    assert type1.modeltype == 1


@pytest.mark.parametrize(
    ("make", "shape"), [(make_policy, (STATE, ACTIONS)), (make_binned_v, (STATE, BINS))], ids=["Policy", "StochasticV"]
)
def test_functions_of_the_state_are_evaluated_at_the_states(make, shape):
    w = normal(*shape)
    term, _ = evaluated(EntropyRegularizer(make(w), beta=0.5))
    np.testing.assert_allclose(term, -0.5 * entropy_of(S @ w), rtol=1e-3)


def test_stochastic_models_can_be_regularized():
    env = type("Env", (), {"observation_space": spaces.Discrete(3), "action_space": spaces.Discrete(2)})
    w = normal(3 * 2, 3)

    class Model(Linear):
        def __call__(self, S, A, is_training):
            return {"logits": jnp.einsum("bs,ba->bsa", S, A).reshape(len(S), -1) @ self.w[...]}

    p = triax.StochasticTransitionModel(Model(w), env)
    states, actions = np.array([0, 1, 2, 2, 1]), np.array([1, 0, 1, 0, 1])
    made = batch(S=states, A=actions, S_next=states, A_next=None, logP_next=None)
    term, _ = evaluated(EntropyRegularizer(p, beta=1.0), made)
    np.testing.assert_allclose(term, -entropy_of(w[states * 2 + actions]), rtol=1e-3)


def test_the_target_term_is_taken_at_the_next_state_times_the_bootstrap_factor():  # F56
    pi = make_policy(normal(STATE, ACTIONS))
    regularizer = EntropyRegularizer(pi, beta=0.5)
    term, _ = regularizer.target_term(pi.params, regularizer.hyperparams, pi.function_state, KEY, batch())
    np.testing.assert_allclose(term, -0.5 * IN * entropy_of(S_NEXT @ weight_of(pi)), rtol=1e-3, atol=1e-6)


def test_functions_run_in_evaluation_mode():
    class Mode(OfState):
        def __call__(self, S, is_training):
            return {"logits": jnp.zeros((len(S), ACTIONS)) if is_training else S @ self.w[...]}

    w = normal(STATE, ACTIONS)
    term, _ = evaluated(EntropyRegularizer(triax.Policy(Mode(w), DISCRETE), beta=1.0))
    np.testing.assert_allclose(term, -entropy_of(S @ w), rtol=1e-3)


def test_the_term_has_a_gradient_in_the_weights_of_its_function():
    pi = make_policy(normal(STATE, ACTIONS))
    regularizer = EntropyRegularizer(pi, beta=1.0)

    def total(params):
        return jnp.sum(regularizer.batch_eval(params, regularizer.hyperparams, {}, KEY, batch())[0])

    def by_hand(w):
        log_p = jax.nn.log_softmax(S @ w)
        return jnp.sum(jnp.exp(log_p) * log_p)

    np.testing.assert_allclose(
        weight_of(jax.grad(total)(pi.params)), jax.grad(by_hand)(weight_of(pi)), rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("Kind", [EntropyRegularizer, KLDivRegularizer, lambda f: NStepEntropyRegularizer(f, [0])])
def test_deterministic_functions_are_refused(Kind):
    q = make_q(normal(STATE, ACTIONS))
    for f in (q, make_v(normal(STATE)), triax.EpsilonGreedy(q), None):
        with pytest.raises(TypeError, match=f"Regularizer: f must be stochastic .*got {type(f).__name__}"):
            Kind(f)


@pytest.mark.parametrize("Kind", [EntropyRegularizer, KLDivRegularizer])
def test_distributions_without_a_density_are_refused_at_construction(Kind):  # F32
    with pytest.raises(NotImplementedError, match="EmpiricalQuantileDist"):
        Kind(make_quantile_q(normal(STATE, ACTIONS * BINS)))


def test_the_function_is_fixed():  # F52: it cannot be changed without effect
    regularizer = EntropyRegularizer(make_policy(normal(STATE, ACTIONS)))
    with pytest.raises(AttributeError):
        regularizer.f = None


def test_an_own_regularizer_needs_only_its_formula():
    class Certainty(Regularizer):
        """The probability of the most probable action."""

        def function(self, dist_params, **hyperparams):
            return jnp.max(jax.nn.softmax(dist_params["logits"]), axis=-1)

        def metrics_func(self, dist_params, **hyperparams):
            return {"Certainty/mean": jnp.mean(self.function(dist_params))}

    w = normal(STATE, ACTIONS)
    term, metrics = evaluated(Certainty(make_policy(w)))
    np.testing.assert_allclose(term, softmax(S @ w).max(axis=1), rtol=1e-4)
    np.testing.assert_allclose(metrics["Certainty/mean"], softmax(S @ w).max(axis=1).mean(), rtol=1e-4)


COMPOSITE = type(
    "Env",
    (),
    {
        "observation_space": OBSERVATIONS,
        "action_space": spaces.Tuple((spaces.Discrete(3), spaces.Box(-np.inf, np.inf, (2,), np.float32))),
    },
)


def make_composite_policy(w):
    def make(x):
        return {"logits": x[:, :3]}, {"mu": x[:, 3:5], "logvar": x[:, 5:]}

    return triax.Policy(Tree(OfState(w), make), COMPOSITE, random_seed=0)


def test_the_entropy_of_a_composite_policy_is_the_sum_over_its_parts():
    w = normal(STATE, 7)
    states = batch(A=(A % 3, np.zeros((B, 2), np.float32)), A_next=None, logP_next=None)
    term, _ = evaluated(EntropyRegularizer(make_composite_policy(w), beta=1.0), states)
    x = S @ w
    gaussian = 0.5 * np.sum(1 + np.log(2 * np.pi) + x[:, 5:], axis=1)
    np.testing.assert_allclose(term, -(entropy_of(x[:, :3]) + gaussian), rtol=1e-3)
