import jax
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings

from space_strategies import any_space
from triax.spaces import default_preprocessor, safe_sample, sample_batch

KEY = jax.random.PRNGKey(0)


def oracle(space, member):
    """One element, in plain NumPy, without a batch axis."""
    match space:
        case spaces.Discrete():
            return np.float32([value == member for value in range(int(space.start), int(space.start + space.n))])
        case spaces.Box():
            return np.clip(member, space.low, space.high).astype(np.float32 if space.dtype == float else space.dtype)
        case spaces.MultiDiscrete():
            rows = zip(np.ravel(member), space.start.ravel(), space.nvec.ravel(), strict=True)
            return [np.float32([value - first == k for k in range(n)]) for value, first, n in rows]
        case spaces.MultiBinary():
            return np.float32(member)
        case spaces.Tuple():
            return tuple(oracle(part, value) for part, value in zip(space.spaces, member, strict=True))
        case spaces.Dict():
            return {key: oracle(part, member[key]) for key, part in space.spaces.items()}


@settings(max_examples=40, deadline=None)
@given(any_space)
def test_an_element_becomes_a_batch_of_one_as_documented(space):
    """F23, F24: `start`, any shape."""
    member = safe_sample(space, 3)
    raw = default_preprocessor(space)(KEY, member)
    expected = oracle(space, member)
    assert jax.tree.structure(raw) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(raw), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b[None])


@settings(max_examples=20, deadline=None)
@given(any_space)
def test_a_batch_stays_a_batch(space):
    batch = sample_batch(space, 3, 0)
    preprocess = default_preprocessor(space)
    raw = preprocess(KEY, batch)
    rows = [preprocess(KEY, jax.tree.map(lambda leaf, k=k: leaf[k], batch)) for k in range(3)]
    for a, b in zip(
        jax.tree.leaves(raw), jax.tree.leaves(jax.tree.map(lambda *r: np.concatenate(r), *rows)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_images_are_passed_as_they_are_and_boxes_clipped():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    raw = default_preprocessor(spaces.Box(0, 255, (2, 2, 3), np.uint8))(KEY, image)
    assert raw.dtype == np.uint8 and raw.shape == (1, 2, 2, 3)
    np.testing.assert_array_equal(
        default_preprocessor(spaces.Box(-1, 1, (2,)))(KEY, np.float32([-3, 0.5])), [[-1, 0.5]]
    )


def test_an_integer_box_as_wide_as_its_dtype_is_not_cut():
    space = spaces.Box(-np.inf, np.inf, (2,), np.int64)
    np.testing.assert_array_equal(
        default_preprocessor(space)(KEY, np.int32([-(2**31), 2**31 - 1]))[0], [-(2**31), 2**31 - 1]
    )


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (spaces.Box(-1, 1, (2,)), np.zeros(3)),
        (spaces.Box(-1, 1, (2,)), np.zeros((2, 2, 2))),
        (spaces.Discrete(3), np.zeros((2, 2), int)),
        (spaces.Discrete(3), np.zeros(2)),
        (spaces.MultiDiscrete([2, 3]), np.zeros(3, int)),
    ],
    ids=str,
)
def test_other_shapes_and_float_indices_are_refused(space, value):
    with pytest.raises(ValueError, match="got"):
        default_preprocessor(space)(KEY, value)


def test_is_traceable():
    space = spaces.Dict(a=spaces.Discrete(3, start=1), b=spaces.MultiDiscrete([2, 2]))
    batch = sample_batch(space, 4, 0)
    raw = jax.jit(default_preprocessor(space))(KEY, batch)
    np.testing.assert_array_equal(np.argmax(raw["a"], axis=1) + 1, batch["a"])
    np.testing.assert_array_equal(np.argmax(raw["b"][1], axis=1), batch["b"][:, 1])
