import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from space_strategies import any_space
from triax.spaces import batch_encoder, decoder, encoder, safe_sample, sample_batch


def encode(space, x):
    return encoder(space, who="Policy", argument="s")(x)


def encode_batch(space, x):
    return batch_encoder(space, who="QLearning", argument="S")(x)


def assert_equal_trees(x, y):
    assert jax.tree.structure(x) == jax.tree.structure(y)
    for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


@settings(max_examples=50, deadline=None)
@given(any_space, st.integers(0, 10))
def test_encode_then_decode_is_the_same_member(space, seed):
    member = safe_sample(space, seed)
    clean = encode(space, member)
    back = decoder(space)(clean)
    assert back in space
    assert_equal_trees(encode(space, back), clean)
    for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(member), strict=True):
        # float64 boxes pass through float32
        np.testing.assert_allclose(a, b, rtol=1e-6)


@settings(max_examples=50, deadline=None)
@given(any_space, st.integers(0, 10))
def test_a_batch_is_encoded_as_its_elements_are(space, seed):
    members = [safe_sample(space, seed + k) for k in range(3)]
    batch = encode_batch(space, jax.tree.map(lambda *leaves: np.stack(leaves), *members))
    expected = jax.tree.map(lambda *leaves: np.stack(leaves), *[encode(space, x) for x in members])
    assert_equal_trees(batch, expected)


@settings(max_examples=30, deadline=None)
@given(any_space)
def test_clean_arrays_are_what_jit_holds_with_strong_types(space):
    clean = encode(space, safe_sample(space, 0))
    assert_equal_trees(jax.jit(lambda x: x)(clean), clean)


@pytest.mark.parametrize(
    ("space", "values"),
    [
        (spaces.Discrete(5, start=2), [3, np.int64(3), np.uint8(3), 3.0, np.float64(3), np.array(3)]),
        (
            spaces.Box(-1, 1, (2,)),
            [[0, 1], (0.0, 1.0), np.array([0, 1]), np.array([0.0, 1.0])],
        ),
        (spaces.Box(-1, 1, (2,), np.float64), [[0, 1], np.array([0.0, 1.0]), np.float32([0, 1])]),
        (spaces.Box(-1, 1, ()), [1, 1.0, np.float64(1), np.array(1.0), np.float32(1)]),
        (
            spaces.Box(0, 255, (2,), np.uint8),
            [[3, 4], np.array([3, 4]), np.float32([3, 4]), np.uint8([3, 4])],
        ),
        (spaces.Box(0, 9, (2,), np.int64), [[3, 4], np.array([3, 4]), np.int32([3, 4])]),
        (spaces.MultiDiscrete([3, 3]), [[1, 2], np.array([1, 2]), np.int8([1, 2]), np.float32([1, 2])]),
        (spaces.MultiBinary(2), [[0, 1], np.array([False, True]), np.int8([0, 1]), np.float64([0, 1])]),
    ],
    ids=str,
)
def test_number_types_that_come_in_make_no_difference_to_jit(space, values):
    function = jax.jit(lambda x: x)
    for value in values:
        function(encode(space, value))
    assert function._cache_size() == 1


@pytest.mark.parametrize(
    ("space", "value", "says"),
    [
        (spaces.Discrete(3, start=2), 1, r"Policy: s must be an element of Discrete\(3, start=2\); got 1"),
        (spaces.Discrete(3, start=2), 5, "got 5"),
        (spaces.Discrete(3), -1, "got -1"),
        (spaces.Discrete(3), 0.5, "got 0.5"),
        (spaces.Discrete(3), float("nan"), "got nan"),
        (spaces.Discrete(3), float("inf"), "got inf"),
        (spaces.Discrete(3), np.array([1]), r"got array\(\[1\]\)"),
        (spaces.Discrete(3), None, "got NoneType"),
        (spaces.Discrete(3), "1", "got str"),
        (spaces.Box(-1, 1, (2,)), np.zeros(3), r"got shape \(3,\), expected \(2,\)"),
        (spaces.Box(-1, 1, (2,)), np.zeros((1, 2)), r"got shape \(1, 2\)"),
        (spaces.Box(-1, 1, (2,)), np.array([0, np.nan]), "NaN"),
        (spaces.Box(-1, 1, (2, 2), np.float64), np.full((2, 2), np.nan), "NaN"),
        (spaces.Box(-1, 1, (2,)), [[0], [0, 1]], "no array"),
        (spaces.Box(-1, 1, (2,)), {"a": 1}, "got a dict"),
        (spaces.Box(-1, 1, (2,)), np.array([1j, 0]), "expected numbers"),
        (spaces.Box(0, 255, (2,), np.uint8), [3, 256], "uint8 cannot hold"),
        (spaces.Box(0, 255, (2,), np.uint8), [3.5, 2.0], "uint8 cannot hold"),
        (spaces.Box(0, 255, (2,), np.uint8), [3.0, np.nan], "uint8 cannot hold"),
        (spaces.Box(-(2**62), 2**62, (1,), np.int64), [2**35], "int32 cannot hold"),
        (spaces.MultiDiscrete([3, 2]), [0, 2], r"got \[0, 2\]"),
        (spaces.MultiDiscrete([3, 2], start=[1, 1]), [0, 1], "got"),
        (spaces.MultiDiscrete([3, 2]), [0], r"got shape \(1,\)"),
        (spaces.MultiBinary(2), [0, 2], "got"),
        (spaces.MultiBinary(2), [0, -1], "got"),
        (spaces.MultiBinary((2, 1)), [0, 1], r"got shape \(2,\)"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)]), (1,), "expected a tuple of 2"),
        (
            spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)]),
            (1, 3),
            r"s\[1\] must be an element of Disc",
        ),
        (spaces.Dict(a=spaces.Discrete(2)), {"b": 1}, r"keys \['b'\], expected a dict with the keys \['a'\]"),
        (spaces.Dict(a=spaces.Discrete(2)), {"a": 1, "b": 1}, "expected a dict"),
        (spaces.Dict(a=spaces.Discrete(2)), 1, "got int"),
        (spaces.Dict(a=spaces.Discrete(2)), {"a": 2}, r"s\['a'\] must be"),
    ],
    ids=str,
)
def test_what_is_no_element_is_refused_by_name(space, value, says):
    with pytest.raises(ValueError, match=says):
        encode(space, value)


def test_box_values_beyond_the_bounds_and_infinite_ones_pass():
    np.testing.assert_array_equal(encode(spaces.Box(-1, 1, (2,)), [-3.0, np.inf]), np.float32([-3, np.inf]))
    np.testing.assert_array_equal(encode(spaces.Box(-1, 1, (2,)), [-np.inf, np.inf]), np.float32([-np.inf, np.inf]))


def test_mappings_and_lists_stand_for_dicts_and_tuples():
    space = spaces.Dict(a=spaces.Tuple([spaces.Discrete(2)]), b=spaces.Discrete(3))
    clean = encode(space, collections.OrderedDict(b=2, a=[1]))
    assert clean == {"a": (1,), "b": 2} and type(clean) is dict and type(clean["a"]) is tuple


@pytest.mark.parametrize(
    ("space", "value", "says"),
    [
        (spaces.Discrete(3, start=1), np.array([1, 2, 0]), r"QLearning: S must .* got 0|row 2"),
        (spaces.Discrete(3), np.array([[1], [2]]), r"got shape \(2, 1\), expected \(batch\)"),
        (spaces.Discrete(3), np.array([1.5]), "cannot hold"),
        (spaces.Box(-1, 1, (2,)), np.zeros(2), r"got shape \(2,\), expected \(batch, 2\)"),
        (spaces.Box(-1, 1, (2,)), np.zeros((3, 3)), r"got shape \(3, 3\)"),
        (spaces.Box(-1, 1, (2,)), np.array([[0, np.nan]]), "NaN"),
        (spaces.MultiDiscrete([[2], [2]]), np.array([[[0], [2]]]), "row 0"),
        (spaces.MultiBinary(2), np.array([[0, 1], [3, 0]]), "row 1"),
        (spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(1)]), ([1, 0], [[1]]), "different batch sizes"),
        (spaces.Dict(a=spaces.Box(0, 1, (2,))), {"a": np.zeros((2, 3))}, r"S\['a'\] must be"),
    ],
    ids=str,
)
def test_what_is_no_batch_is_refused_by_name(space, value, says):
    with pytest.raises(ValueError, match=says):
        encode_batch(space, value)


def test_traced_batches_have_their_shapes_checked_only():
    space = spaces.Dict(a=spaces.Discrete(3), b=spaces.Box(-1, 1, (2,), np.float64))

    @jax.jit
    def function(batch):
        return encode_batch(space, batch)

    batch = function({"a": np.array([7, 8]), "b": np.full((2, 2), np.nan)})
    assert batch["a"].dtype == np.int32 and batch["b"].dtype == np.float32
    with pytest.raises(ValueError, match=r"expected \(batch, 2\)"):
        function({"a": np.array([7, 8]), "b": np.zeros((2, 3))})


def test_device_arrays_stay_where_they_are():
    batch = jax.device_put(sample_batch(spaces.Box(-1, 1, (2,)), 4, 0))
    assert encode_batch(spaces.Box(-1, 1, (2,)), batch) is batch


@pytest.mark.parametrize(
    ("space", "given", "fits"),
    [
        (spaces.Discrete(3), jnp.array([1.5]), False),
        (spaces.Discrete(3), jnp.array([1.0]), False),  # values are not looked at
        (spaces.Discrete(3), jnp.array([1], jnp.int8), True),
        (spaces.Discrete(2), jnp.array([True]), True),
        (spaces.MultiDiscrete([3, 3]), jnp.ones((1, 2)), False),
        (spaces.MultiBinary(2), jnp.ones((1, 2)), False),
        (spaces.MultiBinary(2), jnp.ones((1, 2), bool), True),
        (spaces.Box(0, 255, (2,), np.uint8), jnp.ones((1, 2)), False),
        (spaces.Box(-1, 1, (2,)), jnp.ones((1, 2), jnp.bfloat16), True),
        (spaces.Box(-1, 1, (2,)), jnp.ones((1, 2), int), True),
        (spaces.Box(-1, 1, (2,)), jnp.ones((1, 2), complex), False),
    ],
)
def test_device_arrays_whose_dtype_would_lose_values_are_refused(space, given, fits):
    encode = batch_encoder(space, who="QLearning", argument="batch.A")
    if fits:
        np.testing.assert_array_equal(encode(given), given)
        assert encode(given).dtype == encode(np.array(given, np.float32)).dtype
        return
    with pytest.raises(ValueError, match=rf"QLearning: batch\.A must be .*got an array of {given.dtype} on the device"):
        encode(given)
