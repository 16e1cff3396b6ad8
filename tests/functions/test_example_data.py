"""Example data: it feeds func, func's output has its form, and it prints."""

import jax
import numpy as np
import pytest
from gymnasium import spaces

import triax
from triax.proba_dists import ProbaDist, SquashedNormalDist

from .networks import DISCRETE, REALS, SPACES, env_of, func_of

STATE_CLASSES = {"V": {}, "Policy": {}, "StochasticV": {"value_range": (-1, 1), "num_bins": 3}}
STATE_ACTION_CLASSES = {
    "Q": {},
    "RewardFunction": {},
    "TransitionModel": {},
    "StochasticTransitionModel": {},
    "StochasticQ": {"value_range": (-1, 1), "num_bins": 3},
    "StochasticRewardFunction": {"value_range": None, "num_bins": 3},
}
ALL_CLASSES = STATE_CLASSES | STATE_ACTION_CLASSES


def examples(name, env=DISCRETE, **kwargs):
    """Those of all forms that the class has."""
    data = getattr(triax, name).example_data(env, **ALL_CLASSES[name], **kwargs)
    return [data] if name in STATE_CLASSES else [form for form in data if form is not None]


def assert_like(output, expected):
    assert jax.tree.structure(output) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(output), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


@pytest.mark.parametrize("name", ALL_CLASSES)
def test_inputs_feed_func_and_a_func_of_such_outputs_is_accepted(name):
    for example in examples(name, batch_size=3, random_seed=0):
        func = func_of(example)
        assert_like(func(*example.inputs.args), example.output)
        assert all(len(leaf) == 3 for leaf in jax.tree.leaves((example.inputs.args[:-1], example.output)))
        getattr(triax, name)(func, DISCRETE, **ALL_CLASSES[name])


@pytest.mark.parametrize("name", ALL_CLASSES)
def test_training_mode_is_on_and_its_place_is_named(name):
    for example in examples(name):
        assert example.inputs.args[-1] is True
        assert example.inputs.static_argnums == (len(example.inputs.args) - 1,)
        assert example.inputs.args._fields in (("S", "is_training"), ("S", "A", "is_training"))


@pytest.mark.parametrize("name", STATE_ACTION_CLASSES)
def test_type_2_exists_for_discrete_actions_only(name):
    assert len(examples(name)) == 2
    assert len(examples(name, REALS)) == 1
    type1, type2 = examples(name, batch_size=2)
    shapes = zip(jax.tree.leaves(type1.output), jax.tree.leaves(type2.output), strict=True)
    assert all(two.shape == (2, 4, *one.shape[1:]) for one, two in shapes)


@pytest.mark.parametrize("name", ALL_CLASSES)
def test_the_seed_decides(name):
    first, same, other = (examples(name, random_seed=seed)[0] for seed in (1, 1, 2))
    leaves = [jax.tree.leaves((e.inputs.args[:-1], e.output)) for e in (first, same, other)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves[:2], strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[2], strict=True))


@pytest.mark.parametrize("name", ALL_CLASSES)
def test_they_print_shapes_not_numbers(name):
    for example in examples(name, batch_size=5):
        text = repr(example)
        assert text.startswith("ExampleData(") and "ArgsType" in text and "shape=(5, 3), dtype=float32" in text
        assert "is_training=True" in text
    if name in STATE_ACTION_CLASSES:
        data = getattr(triax, name).example_data(REALS, **ALL_CLASSES[name])
        assert repr(data).startswith("ModelTypes(") and "type2=None" in repr(data)


@pytest.mark.parametrize("name", sorted(set(ALL_CLASSES) - {"StochasticTransitionModel", "TransitionModel"}))
def test_a_given_observation_preprocessor_is_used(name):  # F22
    (example, *_) = examples(name, observation_preprocessor=lambda rng, x: {"x": x[None, :2]})
    assert example.inputs.args.S["x"].shape == (1, 2)


@pytest.mark.parametrize("name", STATE_ACTION_CLASSES)
def test_a_given_action_preprocessor_is_used(name):
    example, _ = examples(name, batch_size=2, action_preprocessor=lambda rng, a: (a * 1.0)[None, None])
    assert example.inputs.args.A.shape == (2, 1)


def test_a_given_distribution_decides_the_output():
    env = env_of(REALS.action_space, REALS.action_space)
    dist = SquashedNormalDist(env.action_space)
    assert set(triax.Policy.example_data(env, proba_dist=dist).output) == {"mu", "logvar"}
    with pytest.raises(TypeError, match=r"Policy.example_data: proba_dist must be over Discrete"):
        triax.Policy.example_data(DISCRETE, proba_dist=dist)
    data = triax.StochasticTransitionModel.example_data(env, proba_dist=dist)
    assert data.type1.inputs.args.S.shape == (1, 2)  # as the distribution preprocesses


@pytest.mark.parametrize("name", ["Tuple", "nested Dict", "MultiDiscrete", "uint8 Box"])
def test_any_space_has_examples(name):
    env = env_of(SPACES[name], SPACES[name])
    output = triax.Policy.example_data(env, batch_size=2).output
    assert jax.tree.structure(output) == ProbaDist(SPACES[name]).dist_params_structure
    example, *_ = triax.TransitionModel.example_data(env, batch_size=2)
    assert jax.tree.structure(example.output) == jax.tree.structure(example.inputs.args.S)
    assert all(len(leaf) == 2 for leaf in jax.tree.leaves((output, example.output)))


@pytest.mark.parametrize("name", ALL_CLASSES)
def test_spaces_that_are_not_those_of_gymnasium_are_refused(name):
    with pytest.raises(TypeError, match=rf"{name}.example_data: env.observation_space must be .*got int"):
        examples(name, env_of(spaces.Discrete(2), 3))
    if name not in ("V", "StochasticV"):
        with pytest.raises(TypeError, match=rf"{name}.example_data: env.action_space must be .*got NoneType"):
            examples(name, env_of(None))
