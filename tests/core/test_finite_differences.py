import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from triax.core.finite_differences import diff_transform, diff_transform_matrix


def test_four_frames_as_documented():
    expected = [[-1, 0, 0, 0], [3, 1, 0, 0], [-3, -2, -1, 0], [1, 1, 1, 1]]
    np.testing.assert_array_equal(diff_transform_matrix(4), expected)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_the_matrix_is_the_reversed_signed_pascal_matrix(n):
    signs = (-1.0) ** np.arange(n)[:, None]
    expected = (signs * scipy.linalg.pascal(n, kind="upper"))[::-1, ::-1]
    np.testing.assert_array_equal(diff_transform_matrix(n), expected)


def test_columns_are_differences_at_the_newest_frame():
    frames = np.random.default_rng(0).normal(size=(7, 3, 4)).astype(np.float32)
    out = diff_transform(frames)
    for order in range(4):
        np.testing.assert_allclose(
            out[..., 3 - order], np.diff(frames, n=order, axis=-1)[..., -1], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_the_result_has_the_dtype_asked_for(dtype):  # F90
    frames = np.array([[10, 20, 250]], np.uint8)
    assert diff_transform_matrix(3, dtype).dtype == jnp.dtype(dtype)
    out = diff_transform(frames, dtype)
    assert out.dtype == jnp.dtype(dtype)
    np.testing.assert_allclose(out.astype(np.float32), [[220, 230, 250]], rtol=1e-2)


@pytest.mark.parametrize("num_frames", [0, -1, True, 2.0])
def test_the_number_of_frames_is_a_positive_int(num_frames):
    with pytest.raises(TypeError, match="num_frames"):
        diff_transform_matrix(num_frames)
