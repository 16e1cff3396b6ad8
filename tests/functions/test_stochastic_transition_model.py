"""The distribution of the next observation."""

import functools

import jax
import numpy as np
import pytest
from gymnasium import spaces

import triax
from triax.proba_dists import ProbaDist, SquashedNormalDist
from triax.spaces import batch_encoder

from .networks import (
    DISCRETE,
    REALS,
    SPACES,
    assert_member,
    assert_number,
    assert_trees_close,
    env_of,
    func_of,
    s,
    stacked,
)

KEY = jax.random.PRNGKey(0)
ACTIONS = spaces.Discrete(2, start=3)


@functools.cache
def model(env=DISCRETE, form="type2", kind="module", **kwargs):
    example = getattr(triax.StochasticTransitionModel.example_data(env, **kwargs), form)
    return triax.StochasticTransitionModel(func_of(example, kind), env, random_seed=0, **kwargs)


@pytest.mark.parametrize("name", ["Discrete", "bounded Box", "uint8 Box", "nested Dict"])
def test_samples_are_members_with_the_log_probability_of_a_learner(name):  # F28, F29
    space = SPACES[name]
    p = model(env_of(ACTIONS, space))
    x = triax.safe_sample(space, seed=0)
    following, logps = p(x, return_logp=True)
    for one, logp, params in zip(following, logps, p.dist_params(x), strict=True):
        assert_member(one, space)
        assert_number(logp)
        X = p.proba_dist.preprocess_variate(KEY, batch_encoder(space, who="", argument="")(stacked([one], space)))
        relearned = p.proba_dist.log_proba(jax.tree.map(lambda leaf: leaf[None], params), X)
        assert np.exp(logp - relearned) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("form", ["type1", "type2"])
def test_both_forms_agree(form):
    p = model(form=form)
    for a in range(4):
        assert_trees_close(p.dist_params(s, a), p.dist_params(s)[a])
        assert_trees_close(p.mean(s, a), p.mean(s)[a])
        assert_trees_close(p.mode(s, a), p.mode(s)[a])
    assert_member(p(s, 0), DISCRETE.observation_space)


def test_the_mean_of_a_normal_is_mu():
    p = model()
    np.testing.assert_allclose(p.mean(s, 2), p.dist_params(s, 2)["mu"], rtol=1e-6)


def test_observations_are_preprocessed_as_the_distribution_does():
    env = env_of(ACTIONS, SPACES["bounded Box"])
    p = model(env)
    assert p.observation_preprocessor == p.proba_dist.preprocess_variate
    assert p.observation_postprocessor == p.proba_dist.postprocess_variate


def test_given_preprocessor_and_distribution_are_used():  # F22
    env = env_of(ACTIONS, SPACES["bounded Box"])
    dist = SquashedNormalDist(env.observation_space)
    example = triax.StochasticTransitionModel.example_data(env, proba_dist=dist).type1
    p = triax.StochasticTransitionModel(
        func_of(example), env, proba_dist=dist, observation_preprocessor=lambda rng, x: x[None] * 1, random_seed=0
    )
    assert p.proba_dist is dist
    assert_member(p(np.array([0.0, 0.5], np.float32), 3), env.observation_space)


def test_a_distribution_over_another_space_is_refused():
    with pytest.raises(TypeError, match="StochasticTransitionModel: proba_dist must be over Box"):
        triax.StochasticTransitionModel(lambda S, is_training: S, DISCRETE, proba_dist=ProbaDist(ACTIONS))


def test_continuous_actions_need_the_action():
    p = model(REALS, "type1")
    assert_member(p(s, np.zeros(2, np.float32)), REALS.observation_space)
    with pytest.raises(ValueError, match="StochasticTransitionModel: without an action"):
        p.mean(s)


def test_a_carry_is_threaded():
    p = model(kind="memory")
    bias, kernel = jax.tree.leaves(p.params)
    following, logp, carry = p(s, 1, p.initial_carry(), return_logp=True)
    assert_member(following, DISCRETE.observation_space)
    assert_number(logp)
    params, carry = p.dist_params(-s, 1, carry)
    logvar, mu = np.split(s @ kernel + bias, 2)
    np.testing.assert_allclose(params["mu"], mu.reshape(4, 3)[1], rtol=1e-5)
    np.testing.assert_allclose(params["logvar"], logvar.reshape(4, 3)[1], rtol=1e-5)
