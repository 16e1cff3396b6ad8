"""Normalizer against NumPy in float64."""

from collections import OrderedDict
from typing import NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx, struct

from triax.networks import Delay, Normalizer, NormalizerStatistics, Sequential, SizeError

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, quick_jit


def fed(normalizer, *batches, jit=jax.jit):
    """The normalizer after learning from batches ``[time, batch, ...]``, in one jitted step."""
    graphdef, variables = nnx.split(normalizer)

    @jit
    def learn(variables, extras):
        net = nnx.merge(graphdef, variables, copy=True)
        net.update_statistics(extras)
        return nnx.state(net)

    for batch in batches:
        variables = learn(variables, batch)
    return nnx.merge(graphdef, variables)


def test_divides_by_ten_before_any_data():
    out = Normalizer(3)((), jnp.array([[10.0, 20, -5]]))
    np.testing.assert_allclose(out.output, [[1, 2, -0.5]], rtol=1e-6)
    np.testing.assert_allclose(Normalizer(1, initial_std=1.0)((), jnp.ones((1, 1))).output, [[1]], rtol=1e-6)


def test_statistics_are_those_of_all_samples():
    data = 3 * normals(0, 2, 5, 4, 3) + 7
    normalizer = fed(Normalizer(3), data[0], data[1])
    rows = np.asarray(data, np.float64).reshape(-1, 3)
    np.testing.assert_allclose(normalizer.mean, rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(normalizer.M2 / normalizer.counter), rows.std(0), rtol=1e-5)
    assert normalizer.counter == 40
    out = np.asarray(normalizer((), data.reshape(-1, 3)).output)
    np.testing.assert_allclose(out.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(out.std(0), 1, atol=1e-4)


def test_is_exact_for_constants():  # pitfall 32
    x = jnp.full((4, 2, 1), 12345.678)
    for batches in (1, 3):
        out = fed(Normalizer(1), *[x] * batches)((), x[0])
        np.testing.assert_array_equal(out.output, 0)


def test_is_exact_for_a_million_with_unit_spread():  # pitfall 32
    noise = np.random.default_rng(0).normal(size=(50, 20, 2))
    x = jnp.asarray(1e6 + noise, jnp.float32)
    stored = np.asarray(x, np.float64)
    normalizer = fed(Normalizer(2), *np.split(x, 5))
    out = np.asarray(normalizer((), x.reshape(-1, 2)).output, np.float64)
    want = (stored - stored.mean((0, 1))) / stored.std((0, 1))
    np.testing.assert_allclose(out, want.reshape(-1, 2), atol=2e-3)


def test_counts_beyond_a_billion_samples():  # F13
    normalizer = fed(Normalizer(1), normals(0, 10, 100, 1))
    for field, factor in (("counter", 1e6), ("m2", 1e6)):
        for variable in jax.tree.leaves(normalizer.statistics[field], is_leaf=lambda v: isinstance(v, nnx.Variable)):
            variable[...] = variable[...] * factor  # as if the same thousand had come a million times
    before = np.float64(normalizer.counter) + np.float64(normalizer.statistics["counter_rest"][...])
    after = fed(normalizer, jnp.full((1, 3, 1), 5.0))
    total = np.float64(after.counter) + np.float64(after.statistics["counter_rest"][...])
    assert before == 1e9 and total == 1e9 + 3
    shift = np.float64(after.mean[0]) - np.float64(normalizer.mean[0])
    rest = after.statistics["mean_rest"]["value"][...] - normalizer.statistics["mean_rest"]["value"][...]
    np.testing.assert_allclose(shift + np.float64(rest[0]), 3 * (5 - float(normalizer.mean[0])) / 1e9, rtol=0.01)


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_samples_that_are_not_finite_are_skipped(bad):
    x = normals(0, 3, 2, 2)
    out = fed(Normalizer(2), x.at[1, 0, 1].set(bad))
    kept = np.delete(np.asarray(x).reshape(-1, 2), 2, axis=0)
    np.testing.assert_allclose(out.mean, kept.mean(0), rtol=1e-5)
    assert out.counter == 5


def test_calls_never_change_the_statistics():  # invariant 2
    normalizer = fed(Normalizer(2), normals(0, 3, 2, 2))
    before = jax.tree.map(np.asarray, nnx.to_pure_dict(nnx.state(normalizer)))
    out = normalizer((), normals(1, 4, 2))
    normalizer((), normals(1, 4, 2), out.rollout_extras)
    jax.tree.map(np.testing.assert_array_equal, nnx.to_pure_dict(nnx.state(normalizer)), before)
    np.testing.assert_array_equal(out.rollout_extras, normals(1, 4, 2))


def test_takes_any_pytree_of_shapes():  # F23
    shape = {"pair": (2,), "image": (2, 2, 1), "nested": [3, jax.ShapeDtypeStruct((), jnp.float32)]}
    x = {
        "pair": normals(0, TIME, BATCH, 2),
        "image": jnp.asarray(np.random.default_rng(0).integers(0, 9, (TIME, BATCH, 2, 2, 1)), jnp.int32).astype(
            jnp.uint8
        ),
        "nested": [normals(1, TIME, BATCH, 3), normals(2, TIME, BATCH)],
    }
    normalizer = fed(Normalizer(shape), x)
    assert normalizer.mean["image"].shape == (2, 2, 1)
    np.testing.assert_allclose(normalizer.mean["nested"][1], np.asarray(x["nested"][1]).mean(), rtol=1e-5)
    out = normalizer((), jax.tree.map(lambda leaf: leaf[0], x))
    assert out.output["image"].dtype == jnp.float32 and out.rollout_extras["image"].dtype == jnp.uint8


class Pair(NamedTuple):
    left: object
    right: object


@struct.dataclass
class Body:
    arm: object
    leg: object


ODD_TREES = {
    "paths of one text": ({"a/b": 1, "a": {"b": 2, "b/c": 3}, "value": 4}, [(2,), (3,), (1,), (4,)]),
    "nothing as a key": ({"": 1, "value": 2}, [(1,), (2,)]),
    "many": ([{"0/x": 2, "0": {"x": 1}} for _ in range(6)], [(1,), (2,)] * 6),
    "names of methods": ({"items": 1, "keys": 2, "mean": 3}, [(1,), (2,), (3,)]),
    "a named tuple of shapes": (Pair((3,), (2, 2)), [(3,), (2, 2)]),
    "a named tuple of sizes": (Pair(3, 4), [(3,), (4,)]),
    "a dataclass": (Body(Pair(2, OrderedDict(x=(2, 1))), {"n": None, "m": np.int64(3)}), [(2,), (2, 1), (3,)]),
    "a list": ([3, [2, 2], (Body(1, 5), [4])], [(3,), (2, 2), (1,), (5,), (4,)]),
}
"""Shapes, and those of the leaves in the order of the tree."""


@pytest.mark.parametrize("name", list(ODD_TREES))
def test_each_leaf_of_any_pytree_has_statistics_of_its_own(name):  # F23
    shape, shapes = ODD_TREES[name]
    normalizer = Normalizer(shape)
    assert [leaf.shape for leaf in jax.tree.leaves(normalizer.mean)] == shapes
    structure = jax.tree.structure(normalizer.mean)
    leaves = [normals(i, 5, 4, *leaf.shape) + 10 * i for i, leaf in enumerate(jax.tree.leaves(normalizer.mean))]
    normalizer = fed(normalizer, structure.unflatten(leaves), jit=quick_jit)
    assert len(set(normalizer.names)) == len(leaves)
    out = normalizer((), structure.unflatten([leaf[0] for leaf in leaves]))
    means, outputs = jax.tree.leaves(normalizer.mean), jax.tree.leaves(out.output)
    assert jax.tree.structure(out.output) == jax.tree.structure(out.rollout_extras) == structure
    for leaf, mean, y in zip(leaves, means, outputs, strict=True):
        rows = np.asarray(leaf, np.float64).reshape(20, *mean.shape)
        np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(y, (rows[:4] - rows.mean(0)) / rows.std(0), rtol=1e-3, atol=1e-4)


def test_statistics_of_trees_with_odd_names_survive_a_split():
    shape, _ = ODD_TREES["paths of one text"]
    normalizer = fed(Normalizer(shape), jax.tree.map(lambda n: normals(n, 3, 2, n), shape), jit=quick_jit)
    graphdef, variables = nnx.split(normalizer)
    fresh = nnx.state(Normalizer(shape))
    nnx.replace_by_pure_dict(fresh, nnx.to_pure_dict(variables))
    again = nnx.merge(graphdef, fresh)
    jax.tree.map(np.testing.assert_array_equal, again.mean, normalizer.mean)
    assert again.counter == 6


def test_takes_spaces_of_boxes():  # F23
    box = gym.spaces.Box(-1, 1, (3,))
    space = gym.spaces.Dict(a=box, b=gym.spaces.Tuple([box, box]))
    assert jax.tree.map(jnp.shape, Normalizer(space).mean, is_leaf=None) == {"a": (3,), "b": ((3,), (3,))}
    with pytest.raises(TypeError, match="only boxes"):
        Normalizer(gym.spaces.Discrete(3))


def test_mappings_become_dicts():
    out = Normalizer({"b": 1, "a": 1})((), OrderedDict(b=jnp.ones((2, 1)), a=jnp.ones((2, 1))))
    assert type(out.output) is dict is type(out.rollout_extras)


def test_clips_if_asked():  # F23
    out = Normalizer(1, clip=2.0)((), jnp.array([[-50.0], [10.0]])).output
    np.testing.assert_array_equal(out, [[-2], [1]])
    with pytest.raises(ValueError, match="must be positive and finite; got 0"):
        Normalizer(1, clip=0)


def test_learns_what_it_sees_where_it_stands():
    inner = Normalizer(1)
    net = Sequential([Delay(jnp.zeros(1), 1, 5.0), inner])
    xs = normals(0, 4, 1, 1)
    out = net.unroll(net.initialize_state(1), xs, jnp.zeros((4, 1), bool))
    net.update_statistics(out.rollout_extras)
    np.testing.assert_allclose(inner.mean[0], np.append(5.0, xs[:3]).mean(), rtol=1e-5)


def test_unroll_equals_stepping_and_replays():
    normalizer = fed(Normalizer(2), normals(0, 3, 2, 2))
    assert_unroll_equals_stepping(Pure(normalizer), normals(1, TIME, BATCH, 2), jnp.zeros((TIME, BATCH), bool))


def test_statistics_are_variables_but_no_parameters():
    _, params, statistics, rest = nnx.split(Normalizer(2), nnx.Param, NormalizerStatistics, ...)
    assert not jax.tree.leaves(params) and not jax.tree.leaves(rest) and len(jax.tree.leaves(statistics)) == 6


def test_refuses_inputs_of_another_tree_or_shape():
    with pytest.raises(ValueError, match="a tree like"):
        Normalizer({"a": 1})((), {"b": jnp.ones((1, 1))})
    with pytest.raises(SizeError, match="takes 3 features on the last axis; got 2"):
        Normalizer(3)((), jnp.ones((1, 2)))
    with pytest.raises(ValueError, match=r"value must be \[batch, \*\[2, 3\]\]; got \[4, 3\]"):
        Normalizer((2, 3))((), jnp.ones((4, 3)))
    with pytest.raises(TypeError, match="shape must be an int"):
        Normalizer("x")
