import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.core.checks import check_array

ARR = jnp.zeros((2, 3), jnp.float32)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"ndim": 2},
        {"ndim": [1, 2]},
        {"ndim": {2, 3}},
        {"ndim_min": 2, "ndim_max": 2},
        {"dtype": "float32"},
        {"dtype": jnp.float32},
        {"dtype": ("int32", np.float32)},
        {"shape": (2, 3)},
        {"axis_size": 3, "axis": 1},
        {"axis_size": {2, 3}, "axis": -1},
    ],
)
def test_an_array_that_is_as_wanted_passes(wanted):
    check_array(ARR, **wanted)
    check_array(np.asarray(ARR), **wanted, except_np=True)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"ndim": 1}, "ndim 1; got 2"),
        ({"ndim": [0, 1]}, "one of 0, 1; got 2"),
        ({"ndim_min": 3}, "at least 3; got 2"),
        ({"ndim_max": 1}, "at most 1; got 2"),
        ({"dtype": "int32"}, "dtype int32; got float32"),
        ({"dtype": ["int32", "uint8"]}, "one of int32, uint8; got float32"),
        ({"shape": (3, 2)}, r"shape \(3, 2\); got \(2, 3\)"),
        ({"axis_size": 4, "axis": 1}, "size of axis 1 4; got 3"),
        ({"axis_size": [1, 4], "axis": 0}, "one of 1, 4; got 2"),
        ({"axis_size": 4, "axis": 2}, "with axis 2; got"),
        ({"axis_size": 4}, "needs axis"),
    ],
)
def test_the_error_says_expected_and_found(wanted, says):
    with pytest.raises(TypeError, match=says):
        check_array(ARR, **wanted)


@pytest.mark.parametrize("arr", [[1, 2], 3.0, None, np.zeros(2)])
def test_only_jax_arrays_pass_unless_numpy_is_excepted(arr):
    with pytest.raises(TypeError, match=f"JAX array; got {type(arr).__name__}"):
        check_array(arr)


def test_tracers_are_arrays():
    jax.jit(lambda x: check_array(x, ndim=2, dtype="float32"))(ARR)
