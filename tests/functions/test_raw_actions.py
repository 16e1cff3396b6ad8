"""How a policy's raw action enters a q-function, and the cheap comparison of preprocessors behind it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import triax
from triax.functions.inputs import preprocess_alike, preprocess_each
from triax.functions.raw_actions import action_adapter
from triax.proba_dists import ProbaDist
from triax.spaces import default_preprocessor

from .networks import DISCRETE, REALS, env_of, func_of

KEY = jax.random.PRNGKey(0)
BOX = REALS.action_space


@functools.cache
def critic(env, act=None):
    example = triax.Q.example_data(env, action_preprocessor=act).type1
    return triax.Q(func_of(example), env, action_preprocessor=act, random_seed=0)


@functools.cache
def policy(env):
    return triax.Policy(func_of(triax.Policy.example_data(env)), env, random_seed=0)


def test_shared_raw_actions_pass_as_they_are():
    pi = policy(REALS)
    adapt = action_adapter(critic(REALS, pi.proba_dist.preprocess_variate), pi, who="rule")
    X = jnp.array([[0.3, -2.0]])
    assert adapt(KEY, X) is X


def test_discrete_actions_pass_as_they_are():
    X = jnp.eye(4)
    assert action_adapter(critic(DISCRETE), policy(DISCRETE), who="rule")(KEY, X) is X


def test_other_raw_actions_are_decoded_and_preprocessed_differentiably():
    adapt = action_adapter(critic(REALS), policy(REALS), who="rule")
    X = jnp.array([[0.3, -2.0], [1.0, 0.0]])
    np.testing.assert_allclose(adapt(KEY, X), -2 + 5 / (1 + np.exp(-np.asarray(X))), rtol=1e-5)
    gradient = jax.grad(lambda x: adapt(KEY, x).sum())(X)
    p = 1 / (1 + np.exp(-np.asarray(X)))
    np.testing.assert_allclose(gradient, 5 * p * (1 - p), rtol=1e-4)


def test_other_raw_actions_of_other_spaces_are_refused():
    env = env_of(spaces.Discrete(4))
    q = critic(env, lambda rng, a: jnp.reshape(a * 1.0, (-1, 1)))
    with pytest.raises(TypeError, match=r"rule: q.action_preprocessor differs from pi.proba_dist.preprocess_variate"):
        action_adapter(q, policy(env), who="rule")


def test_other_action_spaces_are_refused():
    with pytest.raises(TypeError, match=r"rule: q acts in Box.*, the policy in Discrete"):
        action_adapter(critic(REALS), policy(DISCRETE), who="rule")


@pytest.mark.parametrize(
    "space, first, second, alike",
    [
        (BOX, default_preprocessor(BOX), lambda rng, x: jnp.asarray(x), True),
        (BOX, default_preprocessor(BOX), ProbaDist(BOX).preprocess_variate, False),
        (BOX, ProbaDist(BOX).preprocess_variate, ProbaDist(BOX).preprocess_variate, True),
        (BOX, default_preprocessor(BOX), lambda rng, x: [x], False),
        (BOX, default_preprocessor(BOX), lambda rng, x: x[:, :1], False),
        (spaces.Discrete(3), default_preprocessor(spaces.Discrete(3)), lambda rng, x: jax.nn.one_hot(x, 3), True),
    ],
)
def test_preprocessors_are_alike_if_they_give_the_same(space, first, second, alike):
    assert preprocess_alike(space, first, second) is alike


def test_the_comparison_leaves_the_generator_of_the_space_alone():  # F89
    space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    space.seed(0)
    expected = space.sample()
    space.seed(0)
    preprocess_alike(space, default_preprocessor(space), lambda rng, x: x)
    np.testing.assert_array_equal(space.sample(), expected)


def test_elements_are_preprocessed_one_by_one():  # F46
    X = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    rows = preprocess_each(lambda rng, x: {"y": (x[0] + x[1])[None]}, X, who="f", argument="p")
    np.testing.assert_array_equal(rows["y"], X.sum(-1))


def test_a_preprocessor_that_adds_no_batch_axis_is_refused():
    with pytest.raises(TypeError, match=r"f: p must turn one element into a batch of one.*\[\(2,\)\]"):
        preprocess_each(lambda rng, x: x, np.zeros((3, 2)), who="f", argument="p")
