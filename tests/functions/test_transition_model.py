"""The next observation as a function of state and action."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import triax
from triax.proba_dists import ProbaDist
from triax.spaces import default_preprocessor

from .networks import DISCRETE, REALS, SOME_SPACES, SPACES, assert_member, assert_trees_close, env_of, func_of, s

KEY = jax.random.PRNGKey(0)
ACTIONS = spaces.Discrete(2, start=3)
BOUNDED = env_of(ACTIONS, spaces.Box(-1.0, 3.0, (2,), np.float32))
x = np.array([0.5, 2.0], np.float32)


@functools.cache
def model(env=DISCRETE, form="type2", kind="module", postprocessor=None, **kwargs):
    example = getattr(triax.TransitionModel.example_data(env, **kwargs), form)
    return triax.TransitionModel(
        func_of(example, kind), env, observation_postprocessor=postprocessor, random_seed=0, **kwargs
    )


def raw_output(p, x, a):
    S, A = p.observation_preprocessor(KEY, x), p.action_preprocessor(KEY, a)
    return p.function_type1(p.params, p.function_state, p.rng, S, A, False)[0]


@pytest.mark.parametrize("name", SOME_SPACES)
def test_next_observations_are_members_of_the_space(name):
    space = SPACES[name]
    p = model(env_of(ACTIONS, space))
    x = triax.safe_sample(space, seed=0)
    every = p(x)
    assert type(every) is list and len(every) == 2
    for a, following in zip((3, 4), every, strict=True):
        assert_member(following, space)
        raw = raw_output(p, x, a)
        expected = p.observation_postprocessor(KEY, raw)
        jax.tree.map(lambda u, v: np.testing.assert_allclose(u, v, rtol=1e-4, atol=1e-4), following, expected)


@pytest.mark.parametrize("form", ["type1", "type2"])
@pytest.mark.parametrize("kind", ["haiku", "module"])
def test_both_forms_agree(form, kind):
    p = model(BOUNDED, form, kind)
    assert p.modeltype == int(form[-1])
    for a, following in zip((3, 4), p(x), strict=True):
        np.testing.assert_allclose(p(x, a), following, rtol=1e-5)
    assert np.any(p(x, 3) != p(x, 4))


def test_a_bounded_box_is_predicted_in_logit_space():  # section 4; "keep" of 17.6
    p = model(BOUNDED, "type1")
    bias, kernel = jax.tree.leaves(p.params)
    u = np.log((x + 1) / (3 - x))
    expected = -1 + 4 / (1 + np.exp(-(np.concatenate([u, [1, 0]]) @ kernel + bias)))
    np.testing.assert_allclose(p(x, 3), expected, rtol=1e-4)


def test_given_pre_and_postprocessors_are_used():  # F22
    def observe(rng, x):
        return {"half": x[None] / 2}

    def restore(rng, S, index=0, batch_mode=False):
        return np.asarray(S["half"] if batch_mode else S["half"][index]) * 2

    p = model(BOUNDED, "type1", postprocessor=restore, observation_preprocessor=observe)
    bias, kernel = jax.tree.leaves(p.params)
    np.testing.assert_allclose(p(x, 4), 2 * (np.concatenate([x / 2, [0, 1]]) @ kernel + bias), rtol=1e-5)
    assert len(p(x)) == 2
    assert p.observation_postprocessor is restore


@pytest.mark.parametrize("observe", [default_preprocessor(BOUNDED.observation_space), lambda rng, x: x[None, :1]])
def test_a_preprocessor_that_the_default_postprocessor_does_not_undo_is_refused(observe):
    with pytest.raises(TypeError, match="TransitionModel: observation_preprocessor came without observation_postproc"):
        triax.TransitionModel(lambda S, is_training: S, BOUNDED, observation_preprocessor=observe)


def test_a_preprocessor_that_the_default_postprocessor_undoes_is_enough():
    p = model(DISCRETE, observation_preprocessor=lambda rng, x: x[None])
    assert_member(p(s, 0), DISCRETE.observation_space)
    other = ProbaDist(BOUNDED.observation_space)
    p = model(BOUNDED, observation_preprocessor=other.preprocess_variate)
    assert_member(p(x, 3), BOUNDED.observation_space)


def test_continuous_actions_need_the_action():
    p = model(REALS, "type1")
    assert_member(p(s, np.zeros(2, np.float32)), REALS.observation_space)
    with pytest.raises(ValueError, match="TransitionModel: without an action"):
        p(s)


def test_a_carry_is_threaded():
    p = model(kind="memory")
    bias, kernel = jax.tree.leaves(p.params)
    _, carry = p(s, 1, p.initial_carry())
    every, carry = p(-s, carry=carry)
    expected = (s @ kernel + bias).reshape(4, 3)
    assert_trees_close(every, list(expected))


@pytest.mark.parametrize(
    "func, said",
    [
        (lambda S, A, is_training: S[:, :2], r"output: \(8, 2\) float32 \(expected \(8, 3\) float32\)"),
        (lambda S, is_training: S, r"output: \(8, 3\) float32 \(expected \(8, 4, 3\)"),
        (lambda S, A, is_training: [S], "structure"),
        (lambda S, A, is_training: S.astype(jnp.int32), "int32"),
    ],
)
def test_a_wrong_output_is_refused(func, said):
    with pytest.raises(TypeError, match=f"TransitionModel: func must return a next observation.*{said}"):
        triax.TransitionModel(func, DISCRETE)
