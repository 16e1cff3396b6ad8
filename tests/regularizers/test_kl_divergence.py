"""The divergence from a prior, against the integral and the sum; priors are checked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from linear_functions import ACTIONS, STATE, B, S, batch, make_policy, make_real_policy, normal, softmax
from triax.regularizers import KLDivRegularizer

KEY = jax.random.PRNGKey(0)


def evaluated(regularizer):
    f = regularizer.f
    return regularizer.batch_eval(f.params, regularizer.hyperparams, f.function_state, KEY, batch())


def test_without_a_prior_the_divergence_is_from_the_uniform_distribution():
    w = normal(STATE, ACTIONS)
    term, metrics = evaluated(KLDivRegularizer(make_policy(w), beta=0.5))
    p = softmax(S @ w)
    divergence = np.sum(p * np.log(p * ACTIONS), axis=1)
    np.testing.assert_allclose(term, 0.5 * divergence, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(metrics["KLDivRegularizer/kl_div"], divergence.mean(), rtol=1e-3)
    np.testing.assert_allclose(metrics["KLDivRegularizer/beta"], 0.5)


@pytest.mark.parametrize("rows", [1, B])
def test_priors_may_be_one_for_all_or_one_for_each_row(rows):
    w, prior = normal(STATE, ACTIONS), normal(rows, ACTIONS)
    term, _ = evaluated(KLDivRegularizer(make_policy(w), 1.0, {"logits": prior}))
    p = softmax(S @ w)
    np.testing.assert_allclose(term, np.sum(p * np.log(p / softmax(prior)), axis=1), rtol=1e-3, atol=1e-6)


def test_the_divergence_of_real_actions_is_the_integral():
    w = normal(STATE, 2)
    prior = {"mu": np.array([[0.5, -1.0]]), "logvar": np.array([[0.3, -0.4]])}
    term, _ = evaluated(KLDivRegularizer(make_real_policy(w), 1.0, prior))
    expected = []
    for mu in S @ w:
        total = 0.0
        for k in range(2):
            p = norm(mu[k], 1)
            q = norm(prior["mu"][0, k], np.exp(prior["logvar"][0, k] / 2))
            total += quad(lambda x, p=p, q=q: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), mu[k] - 10, mu[k] + 10)[0]
        expected.append(total)
    np.testing.assert_allclose(term, expected, rtol=1e-3)


def test_a_prior_may_be_what_the_policy_was():
    pi = make_policy(normal(STATE, ACTIONS))
    old = jax.tree.map(lambda leaf: leaf[None], pi.dist_params(S[0]))
    term, _ = evaluated(KLDivRegularizer(pi, 1.0, old))
    np.testing.assert_allclose(term[0], 0, atol=1e-6)
    assert np.all(term[1:] > 0)


def test_hyperparams_are_beta_and_priors():
    regularizer = KLDivRegularizer(make_policy(normal(STATE, ACTIONS)))
    assert regularizer.hyperparams.keys() == {"beta", "priors"}
    assert regularizer.beta == 0.001
    regularizer.priors = {"logits": jnp.ones((1, ACTIONS))}
    np.testing.assert_array_equal(regularizer.hyperparams["priors"]["logits"], 1)


@pytest.mark.parametrize(
    ("priors", "error"),
    [
        ({"mu": np.zeros((1, ACTIONS))}, TypeError),
        (np.zeros((1, ACTIONS)), TypeError),
        ({"logits": np.zeros((1, ACTIONS + 1))}, ValueError),
        ({"logits": np.zeros(ACTIONS)}, ValueError),
    ],
)
def test_priors_that_are_no_parameters_of_the_distribution_are_refused(priors, error):
    pi = make_policy(normal(STATE, ACTIONS))
    with pytest.raises(error):
        KLDivRegularizer(pi, priors=priors)
    regularizer = KLDivRegularizer(pi)
    with pytest.raises(error):
        regularizer.priors = priors
    np.testing.assert_array_equal(regularizer.priors["logits"], 0)
