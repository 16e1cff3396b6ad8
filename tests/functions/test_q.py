"""Values of state and action: both forms, both spaces, and the reward function, a ``Q`` by another name."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import triax
from triax.losses.value_transforms import LogTransform
from triax.proba_dists import ProbaDist

from .networks import DISCRETE, KINDS, REALS, SOME_SPACES, SPACES, STATE, assert_number, env_of, func_of, s

START = env_of(spaces.Discrete(4, start=-2))


@functools.cache
def q_function(env=DISCRETE, form="type2", kind="module", cls=triax.Q, value_transform=None, **kwargs):
    example = getattr(cls.example_data(env, **kwargs), form)
    return cls(func_of(example, kind), env, value_transform=value_transform, random_seed=0, **kwargs)


@pytest.mark.parametrize("form", ["type1", "type2"])
@pytest.mark.parametrize("cls, kind", [*((triax.Q, kind) for kind in KINDS[:3]), (triax.RewardFunction, "module")])
def test_both_calls_agree_for_both_forms(cls, kind, form):
    q = q_function(START, form, kind, cls, value_transform=LogTransform())
    values = q(s)
    assert type(values) is np.ndarray and values.shape == (4,) and values.dtype == np.float32
    for i, a in enumerate(range(-2, 2)):  # F23
        assert_number(q(s, a))
        assert q(s, a) == pytest.approx(values[i], rel=1e-5)
    assert len(set(values.tolist())) == 4


@pytest.mark.parametrize("form", ["type1", "type2"])
def test_the_pure_functions_of_both_forms_agree(form):
    q = q_function(form=form)
    assert q.modeltype == int(form[-1])
    S = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    weights = q.params, q.function_state, q.rng
    all_values, _ = q.function_type2(*weights, S, False)
    A = jax.nn.one_hot(np.array([0, 1, 2, 3, 1]), 4)
    np.testing.assert_allclose(
        q.function_type1(*weights, S, A, False)[0], all_values[np.arange(5), A.argmax(-1)], rtol=1e-5
    )
    inputs = (S, A) if form == "type1" else (S,)
    own_form = getattr(q, f"function_{form}")
    np.testing.assert_array_equal(q.function(*weights, *inputs, False)[0], own_form(*weights, *inputs, False)[0])


def test_an_action_may_be_a_weighted_mean_of_actions():  # section 3.3
    q = q_function()
    weights = np.array([[0.1, 0.2, 0.3, 0.4]], np.float32)
    mean, _ = q.function_type1(q.params, q.function_state, q.rng, s[None], weights, False)
    assert mean[0] == pytest.approx(weights[0] @ q(s), rel=1e-5)


@pytest.mark.parametrize("name", SOME_SPACES)
def test_actions_of_any_space_have_a_value(name):
    q = q_function(env_of(SPACES[name]), "type1")
    a = triax.safe_sample(SPACES[name], seed=0)
    assert_number(q(s, a))
    S, A = q.observation_preprocessor(None, s), q.action_preprocessor(None, a)
    output, _ = q.function(q.params, q.function_state, q.rng, S, A, False)
    assert q(s, a) == pytest.approx(output.item(), rel=1e-4)


@pytest.mark.parametrize("a", [1, np.int64(1), np.int32(1), np.array(1), 1.0, jnp.array(1)])
def test_an_integer_of_any_type_is_an_action(a):
    q = q_function()
    assert q(s, a) == q(s)[1]


@pytest.mark.parametrize("a", [4, -1, 1.5, "left", [1, 2], np.nan, np.zeros(4)])
def test_an_action_outside_the_space_is_refused(a):
    with pytest.raises(ValueError, match="Q: a must be an element of Discrete"):
        q_function()(s, a)


@pytest.mark.parametrize("a", [1.0, [1.0], [[1.0, 2.0]], [np.nan, 0.0], "up"])
def test_an_action_of_another_shape_is_refused(a):
    with pytest.raises(ValueError, match="Q: a must be an element of Box"):
        q_function(REALS, "type1")(s, a)


def test_a_missing_action_is_refused_unless_actions_are_discrete():
    q = q_function(REALS, "type1")
    with pytest.raises(ValueError, match=r"Q: without an action .* got Box.*f\(s, a\)"):
        q(s)
    with pytest.raises(ValueError, match="Q: without an action"):
        _ = q.function_type2


def test_values_are_in_original_units():  # F31
    transform = LogTransform(0.5)
    plain, transformed = q_function(), q_function(value_transform=transform)
    np.testing.assert_allclose(transformed(s), transform.inverse_func(plain(s)), rtol=1e-5)


@pytest.mark.parametrize("form", ["type1", "type2"])
@pytest.mark.parametrize("cls", [triax.Q, triax.RewardFunction])
def test_the_given_observation_preprocessor_is_used_everywhere(cls, form):  # F22
    q = q_function(form=form, cls=cls, observation_preprocessor=lambda rng, x: {"x": x[None, :2]})
    assert q(s).shape == (4,)
    assert q(np.array([s[0], s[1], 99.0], np.float32), 1) == pytest.approx(q(s)[1], rel=1e-5)


def test_an_action_preprocessor_need_not_know_batches():  # F46
    def embed(rng, a):
        assert jnp.shape(a) == ()
        return jnp.stack([a, a * a]).astype(jnp.float32)[None]

    q = q_function(START, "type1", action_preprocessor=embed)
    bias, kernel = jax.tree.leaves(q.params)
    expected = [(np.concatenate([s, [a, a * a]]) @ kernel + bias).item() for a in range(-2, 2)]
    np.testing.assert_allclose(q(s), expected, rtol=1e-5)


@pytest.mark.parametrize("act", [lambda rng, a: a[None, None] * 1.0, lambda rng, a: jax.nn.one_hot(a, 4)[None, ::-1]])
def test_a_type_2_function_refuses_actions_that_are_not_one_hot(act):
    func = func_of(triax.Q.example_data(DISCRETE).type2)
    with pytest.raises(TypeError, match=r"Q: action_preprocessor must give one-hot actions, shape \(batch, 4\)"):
        triax.Q(func, DISCRETE, action_preprocessor=act)


def test_a_critic_shares_the_raw_actions_of_a_policy():
    dist = ProbaDist(REALS.action_space)
    q = q_function(REALS, "type1", action_preprocessor=dist.preprocess_variate)
    a = np.array([0.5, 1.0], np.float32)
    bias, kernel = jax.tree.leaves(q.params)
    expected = np.concatenate([s, np.log((a + 2) / (3 - a))]) @ kernel + bias
    assert q(s, a) == pytest.approx(expected.item(), rel=1e-4)


def test_unavailable_actions_may_have_infinitely_low_values():
    mask = np.array([0.0, -np.inf, 0.0, 0.0], np.float32)
    q = triax.Q(lambda S, is_training: S.sum(-1, keepdims=True) + mask, DISCRETE)
    assert [q(s, a) for a in range(4)] == q(s).tolist()


@pytest.mark.parametrize(
    "func, said",
    [
        (lambda S, A, is_training: S, r"one value per state-action pair, shape \(8,\); got \(8, 3\)"),
        (lambda S, A, is_training: S[:, :1], "Did you forget"),
        (lambda S, is_training: S, r"one value per action for each state, shape \(8, 4\); got \(8, 3\)"),
        (lambda S, is_training: S[:, 0], r"shape \(8, 4\); got \(8,\)"),
    ],
)
def test_a_wrong_output_is_refused(func, said):
    with pytest.raises(TypeError, match=f"Q: func must return .*{said}"):
        triax.Q(func, DISCRETE)


@pytest.mark.parametrize(
    "env, argument",
    [(env_of(None), "action_space"), (env_of(spaces.Discrete(2), None), "observation_space"), (STATE, "observation_")],
)
def test_spaces_that_are_not_those_of_gymnasium_are_refused(env, argument):
    with pytest.raises(TypeError, match=f"Q: env.{argument}"):
        triax.Q(lambda S, is_training: S, env)


def test_a_carry_is_threaded_for_one_action_and_for_all():
    q = q_function(kind="memory")
    bias, kernel = jax.tree.leaves(q.params)
    _, carry = q(s, None, q.initial_carry())
    values, _ = q(-s, carry=carry)
    value, _ = q(-s, 2, carry)
    np.testing.assert_allclose(values, s @ kernel + bias, rtol=1e-5)
    assert value == pytest.approx(values[2], rel=1e-5)


def test_a_flat_batch_is_refused_by_a_function_with_memory():
    q = q_function(kind="memory")
    with pytest.raises(TypeError, match=r"Q: func has memory, .*no time axis.*Trajectory"):
        q.function(q.params, q.function_state, q.rng, s[None], False)
