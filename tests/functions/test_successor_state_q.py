"""One-step look-ahead from all combinations of deterministic and stochastic parts, against a computation by hand."""

import copy
import functools
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import triax
from triax.losses.value_transforms import LogTransform
from triax.reward_tracing import get_transition_batch
from triax.td_learning import SimpleTD

from .networks import DISCRETE, REALS, assert_number, env_of, func_of, s

KEY = jax.random.PRNGKey(0)
BOUNDED = env_of(spaces.Discrete(3, start=1), spaces.Box(-1.0, 3.0, (2,), np.float32))
x = np.array([0.5, 2.0], np.float32)
RANGE, BINS = (-2.0, 2.0), 4
SCALED = LogTransform(0.5)


@functools.cache
def part(name, is_stochastic, env=BOUNDED, transform=None, form="type1"):
    """``v``, ``p`` or ``r``; all share the preprocessor of a transition model."""
    observe = triax.StochasticTransitionModel(
        func_of(triax.StochasticTransitionModel.example_data(env).type1), env, random_seed=0
    ).observation_preprocessor
    shared = {"observation_preprocessor": observe}
    if name == "p":
        cls = triax.StochasticTransitionModel if is_stochastic else triax.TransitionModel
        return cls(func_of(getattr(cls.example_data(env), form)), env, random_seed=1)
    extra = {"value_range": RANGE, "num_bins": BINS} if is_stochastic else {}
    if name == "v":
        cls = triax.StochasticV if is_stochastic else triax.V
        example = cls.example_data(env, **extra, **shared)
    else:
        cls = triax.StochasticRewardFunction if is_stochastic else triax.RewardFunction
        example = getattr(cls.example_data(env, **extra, **shared), form)
    return cls(func_of(example, seed=7), env, value_transform=transform, random_seed=2, **extra, **shared)


def look_ahead(v=False, p=False, r=False, gamma=0.8, transform=None, env=BOUNDED, form="type1"):
    parts = part("v", v, env, transform), part("p", p, env, form=form), part("r", r, env, transform, form)
    return triax.SuccessorStateQ(*(f.copy() for f in parts), gamma=gamma)


def expected(f, x, a):
    """``r(s, a) + gamma v(s')`` from what the parts themselves answer, distributions through their means."""
    mean = [getattr(part, "mean", part) for part in (f.v, f.p, f.r)]
    v, p, r = mean
    return r(x, a) + f.gamma * v(p(x, a))


@pytest.mark.parametrize("v, p, r", itertools.product([False, True], repeat=3))
def test_all_combinations_of_parts_give_the_look_ahead(v, p, r):  # F37
    q = look_ahead(v, p, r)
    every = q(x)
    assert type(every) is np.ndarray and every.shape == (3,)
    for i, a in enumerate((1, 2, 3)):
        assert_number(q(x, a))
        assert q(x, a) == pytest.approx(expected(q, x, a), rel=1e-3, abs=1e-4)
        assert every[i] == pytest.approx(q(x, a), rel=1e-4)


@pytest.mark.parametrize("v, r", [(False, False), (True, True), (False, True)])
def test_transforms_of_values_and_rewards_are_inverted(v, r):  # F37
    q = look_ahead(v, False, r, transform=SCALED)
    assert q.value_transform == SCALED
    for a in (1, 3):
        assert q(x, a) == pytest.approx(expected(q, x, a), rel=1e-3, abs=1e-4)
    S, A = q.observation_preprocessor(KEY, x), q.action_preprocessor(KEY, 1)
    output, _ = q.function_type1(q.params, q.function_state, q.rng, S, A, False)
    assert SCALED.inverse_func(output)[0] == pytest.approx(q(x, 1), rel=1e-4)


def test_models_of_type_2_serve_too():
    q = look_ahead(form="type2")
    assert q.modeltype == 1
    for a in (1, 2):
        assert q(x, a) == pytest.approx(expected(q, x, a), rel=1e-3, abs=1e-4)


def test_gamma_is_a_plain_attribute():
    q = look_ahead()
    near = q(x)
    q.gamma = 0.0
    np.testing.assert_allclose(q(x), q.r(x), rtol=1e-5)
    assert np.any(q(x) != near)


def test_weights_are_those_of_the_parts_and_read_only():
    q = look_ahead()
    assert set(q.params) == {"v", "p", "r", "gamma"} and set(q.function_state) == {"v", "p", "r"}
    assert q.params["gamma"] == np.float32(0.8)
    for name in ("params", "function_state"):
        with pytest.raises(AttributeError, match=f"SuccessorStateQ.{name} is read-only: train or assign .* v, p and r"):
            setattr(q, name, getattr(q, name))


def test_training_a_part_changes_the_look_ahead():
    q = look_ahead()
    held, before = q.params, q(x)
    kernel = np.array(held["v"]["layer"]["kernel"])
    rule = SimpleTD(q.v)
    for seed in range(2):
        rule.update(get_transition_batch(BOUNDED, batch_size=4, random_seed=seed))
    assert np.any(q(x) != before)
    np.testing.assert_array_equal(held["v"]["layer"]["kernel"], kernel)  # readable, not donated


@pytest.mark.parametrize("how", [lambda f: f.copy(), copy.copy, copy.deepcopy])
def test_a_copy_has_parts_of_its_own(how):  # F37
    q = look_ahead()
    twin = how(q)
    np.testing.assert_array_equal(twin(x), q(x))
    for mine, theirs in ((q.v, twin.v), (q.p, twin.p), (q.r, twin.r)):
        assert mine is not theirs
        theirs.params = jax.tree.map(lambda leaf: leaf + 1, theirs.params)
    assert np.all(twin(x) != q(x)) and twin.gamma == q.gamma


def test_a_soft_update_moves_all_parts():  # F37
    q, target = look_ahead(), look_ahead()
    for f in (q.v, q.p, q.r):
        f.params = jax.tree.map(lambda leaf: leaf + 1, f.params)
    target.soft_update(q, 1.0)
    np.testing.assert_allclose(target(x), q(x), rtol=1e-5)


def test_a_soft_update_that_does_not_fit_changes_nothing():
    q, other = look_ahead(), look_ahead(r=True)
    before = q(x)
    with pytest.raises(TypeError, match="soft_update"):
        q.soft_update(other, 1.0)
    np.testing.assert_array_equal(q(x), before)


def test_seed_and_key_are_those_of_v():
    q = look_ahead()
    assert q.random_seed == q.v.random_seed == 2
    q.random_seed = 5
    assert q.v.random_seed == 5
    assert np.any(np.asarray(q.rng) != np.asarray(q.v.rng))


def test_continuous_actions_need_the_action():
    q = look_ahead(env=REALS)
    a = np.array([0.5, 1.0], np.float32)
    assert q(s, a) == pytest.approx(expected(q, s, a), rel=1e-3)
    with pytest.raises(ValueError, match="SuccessorStateQ: without an action"):
        q(s)


def test_a_policy_can_be_made_of_it():
    q = look_ahead(p=True)
    pi = triax.EpsilonGreedy(q, epsilon=0.0)
    assert pi(x) == pi.mode(x) == 1 + q(x).argmax()


@pytest.mark.parametrize("position, found", [(0, "RewardFunction"), (1, "V"), (2, "V")])
def test_parts_of_another_kind_are_refused(position, found):
    parts = [part("v", False), part("p", False), part("r", False)]
    parts[position] = part({"RewardFunction": "r", "V": "v"}[found], False)
    with pytest.raises(TypeError, match=f"SuccessorStateQ: {'vpr'[position]} must be .*; got {found}"):
        triax.SuccessorStateQ(*parts)


def test_parts_of_another_space_are_refused():
    with pytest.raises(TypeError, match="SuccessorStateQ: the parts must share one observation_space"):
        triax.SuccessorStateQ(part("v", False, DISCRETE), part("p", False), part("r", False))


def test_parts_with_memory_are_refused():
    v = triax.V(func_of(triax.V.example_data(BOUNDED), "memory"), BOUNDED)
    with pytest.raises(TypeError, match="SuccessorStateQ: v must be memoryless"):
        triax.SuccessorStateQ(v, part("p", False), part("r", False))


@pytest.mark.parametrize("is_stochastic", [False, True])
def test_parts_made_with_defaults_see_what_they_were_made_for_without_a_warning(is_stochastic):
    v = triax.V(func_of(triax.V.example_data(BOUNDED), seed=3), BOUNDED)
    r = triax.RewardFunction(func_of(triax.RewardFunction.example_data(BOUNDED).type1, seed=4), BOUNDED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = triax.SuccessorStateQ(v, part("p", is_stochastic), r)
        for a in (1, 3):
            assert q(x, a) == pytest.approx(expected(q, x, a), rel=1e-3, abs=1e-4)
    raw = q.p.observation_preprocessor(KEY, x)[0]
    assert np.any(np.abs(raw - x) > 0.1)  # the model sees something else


def test_parts_that_cannot_get_the_inputs_they_were_made_for_are_warned_of():
    example = triax.TransitionModel.example_data(BOUNDED, observation_preprocessor=doubled).type1
    p = triax.TransitionModel(
        func_of(example),
        BOUNDED,
        observation_preprocessor=doubled,
        observation_postprocessor=lambda rng, X, index=0, batch_mode=False: X[index] / 2,
    )
    shared = {"observation_preprocessor": doubled}
    v = triax.V(func_of(triax.V.example_data(BOUNDED)), BOUNDED)
    r = triax.RewardFunction(func_of(triax.RewardFunction.example_data(BOUNDED, **shared).type1), BOUNDED, **shared)
    with pytest.warns(UserWarning, match="observation_preprocessor of v differs") as warned:
        triax.SuccessorStateQ(v, p, r)
    assert len(warned) == 1


def doubled(rng, s):
    return jnp.atleast_2d(s) * 2


def test_different_actions_are_warned_of():
    r = triax.RewardFunction(
        func_of(triax.RewardFunction.example_data(BOUNDED, action_preprocessor=halved).type1),
        BOUNDED,
        action_preprocessor=halved,
    )
    with pytest.warns(UserWarning, match="action_preprocessor of r differs from that of p"):
        triax.SuccessorStateQ(part("v", False), part("p", False), r)


def halved(rng, a):
    return 0.5 * jax.nn.one_hot(jnp.atleast_1d(a) - 1, 3)
