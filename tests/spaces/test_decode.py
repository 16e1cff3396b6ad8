import jax
import numpy as np
import pytest
from gymnasium import spaces

from triax.spaces import batch_decoder, decoder, encoder, sample_batch


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int64, np.int32])
def test_a_box_gives_writable_arrays_of_its_own_dtype(dtype):
    """F26, F27: integer and float64 boxes too."""
    space = spaces.Box(0, 9, (2, 2), dtype)
    clean = jax.device_put(encoder(space, who="pi", argument="a")(np.full((2, 2), 7, dtype)))
    member = decoder(space)(clean)
    assert member.dtype == dtype and member in space
    member[0, 0] = 3
    assert clean[0, 0] == 7


def test_rounding_to_float32_does_not_leave_a_float64_box():
    """F27: 0.1 in float32 is larger than 0.1."""
    space = spaces.Box(-0.1, 0.1, (1,), np.float64)
    assert decoder(space)(np.float32([0.1])) in space
    assert np.float64(np.float32(0.1)) > 0.1


def test_discrete_gives_a_python_int_with_start():
    """F23."""
    space = spaces.Discrete(3, start=-5)
    member = decoder(space)(jax.device_put(np.int32(-4)))
    assert type(member) is int and member == -4 and member in space


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([[2], [3]], dtype=np.int32), spaces.MultiBinary((3, 2))])
def test_multi_axis_discrete_spaces_keep_shape_and_dtype(space):
    """F24."""
    member = decoder(space)(jax.device_put(np.ones(space.shape, np.int32)))
    assert member in space and member.dtype == space.dtype and member.flags.writeable


def test_nested_spaces_give_tuples_and_dicts():
    space = spaces.Dict(a=spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, ())]))
    member = decoder(space)({"a": (np.int32(1), np.float32(0.5))})
    assert member in space and type(member["a"]) is tuple and type(member["a"][0]) is int


def test_a_batch_is_decoded_as_its_rows_are():
    box = spaces.Box(-0.1, 0.1, (2,), np.float64)
    space = spaces.Dict(a=spaces.Discrete(3, start=2), b=spaces.Tuple([box, spaces.MultiBinary(2)]))
    clean = sample_batch(space, 4, 0)
    batch = batch_decoder(space)(clean)
    assert batch["a"].dtype == np.int64 and batch["b"][0].dtype == np.float64
    for row in range(4):
        member = decoder(space)(jax.tree.map(lambda leaf, k=row: leaf[k], clean))
        jax.tree.map(lambda leaf, x, k=row: np.testing.assert_array_equal(leaf[k], x), batch, member)
