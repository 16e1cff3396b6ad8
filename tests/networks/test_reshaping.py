"""Splitter, Flattener, Filter, Scale: what goes where, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from triax.networks import Filter, Flattener, Scale, Sequential, SizeError, Splitter

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals

OBS = {"b": {"v": normals(0, 2, 3), "u": normals(1, 2)}, "a": (normals(2, 2, 2, 2), jnp.arange(2))}


def test_splitter_keeps_the_declared_order():
    parts = Splitter(z=1, a=2)((), jnp.array([[1.0, 2, 3]])).output
    assert list(parts) == ["z", "a"]
    np.testing.assert_array_equal(parts["z"], [[1]])
    np.testing.assert_array_equal(parts["a"], [[2, 3]])


@pytest.mark.parametrize("width", [2, 4])
def test_splitter_refuses_inputs_that_are_too_short_or_too_wide(width):  # F34
    with pytest.raises(SizeError, match=f"Splitter: takes 3 features on the last axis; got {width}"):
        Splitter(a=1, b=2)((), jnp.zeros((1, width)))


@pytest.mark.parametrize("sizes", [{}, {"a": 0}, {"a": 2, "b": -1}])
def test_splitter_refuses_sizes_below_one(sizes):
    with pytest.raises(ValueError, match=r"positive integers|must be at least 1; got"):
        Splitter(**sizes)


def test_flattener_joins_leaves_in_the_order_of_the_tree():
    out = Flattener()((), OBS).output
    want = [OBS["a"][0].reshape(2, 4), OBS["a"][1][:, None], OBS["b"]["u"][:, None], OBS["b"]["v"]]
    np.testing.assert_array_equal(out, np.concatenate(want, axis=1))
    np.testing.assert_array_equal(Flattener()((), OBS["b"]["v"]).output, OBS["b"]["v"])


def test_flattener_preserves_upper_levels():
    one = Flattener(1)((), OBS).output
    assert one["a"].shape == (2, 5) and one["b"].shape == (2, 4)
    two = Flattener(2)((), OBS).output
    assert isinstance(two["a"], tuple) and two["a"][1].shape == (2, 1) == two["b"]["u"].shape


def test_flattener_refuses_negative_levels_and_leaves_above():
    with pytest.raises(ValueError, match="preserve_levels must be at least 0; got -1"):
        Flattener(-1)
    with pytest.raises(TypeError, match=r"needs that many levels .* shape \[2, 3\] above"):
        Flattener(3)((), OBS)


def test_filter_takes_keys_paths_and_functions():
    spec = {"k": "b", "path": ("a", 0), "f": lambda x: x["b"]["u"] * 2}
    out = Filter(spec)((), OBS).output
    assert list(out) == ["k", "path", "f"] and out["k"] is OBS["b"] and out["path"] is OBS["a"][0]
    np.testing.assert_array_equal(out["f"], OBS["b"]["u"] * 2)


def test_filter_refuses_other_specs_and_missing_keys():
    with pytest.raises(TypeError, match="spec must be a dict; got list"):
        Filter(["a"])
    with pytest.raises(TypeError, match=r"entry 'a' must be a key, a tuple .* got 3"):
        Filter({"a": 3})
    with pytest.raises(KeyError, match=r"no 'c' for entry 'x'.*there is \['v', 'u'\]"):
        Filter({"x": ("b", "c")})((), OBS)


def test_scale_multiplies_every_leaf():
    out = Scale(0.5)((), {"a": jnp.array([2]), "b": jnp.array([[4.0]])}).output
    np.testing.assert_array_equal(out["a"], [1.0])
    np.testing.assert_array_equal(out["b"], [[2.0]])


def test_unroll_equals_stepping():
    net = Sequential([Filter({"p": "x", "q": lambda x: x["n"]}), Scale(2), Flattener(), Splitter(a=2, b=1)])
    xs = {"x": normals(0, TIME, BATCH, 2), "n": normals(1, TIME, BATCH)}
    assert_unroll_equals_stepping(Pure(net), xs, jnp.zeros((TIME, BATCH), bool))
