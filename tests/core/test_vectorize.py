import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.core.vectorize import unvectorize


def scale_and_sum(x, y):
    return {"scaled": 2 * x, "total": x.sum() + y}


@pytest.mark.parametrize("namespace", [np, jnp])
@pytest.mark.parametrize(("in_axes", "out_axes"), [(0, 0), ((0, 0), 0), ([1, 0], 1), ((-1, 0), -1)], ids=str)
def test_undoes_vmap(namespace, in_axes, out_axes):
    def affine(x, y):
        return y * x

    x, y = namespace.arange(3.0), namespace.ones(())
    back = unvectorize(jax.vmap(affine, in_axes, out_axes), in_axes, out_axes)
    np.testing.assert_allclose(back(x, y), affine(x, y))


def test_arguments_and_outputs_are_pytrees():
    back = unvectorize(jax.vmap(scale_and_sum))
    expected = scale_and_sum(jnp.arange(4.0), jnp.ones(3))
    jax.tree.map(np.testing.assert_allclose, back(jnp.arange(4.0), jnp.ones(3)), expected)
    tree = unvectorize(lambda s: jax.tree.map(lambda x: x[:, ::-1], s))({"a": (np.arange(3),)})
    np.testing.assert_array_equal(tree["a"][0], [2, 1, 0])


def test_none_leaves_an_argument_or_an_output_alone():
    def f(batch, factor):
        return batch * factor, factor

    out, factor = unvectorize(f, in_axes=(0, None), out_axes=(0, None))(np.arange(2.0), 3.0)
    np.testing.assert_array_equal(out, [0, 3])
    assert factor == 3.0


def test_numpy_functions_stay_numpy():
    assert isinstance(unvectorize(lambda x: x + 1)(np.arange(2)), np.ndarray)


def test_wrong_axes_are_refused():
    def f(x):
        return x, x

    with pytest.raises(ValueError, match=r"in_axes.*1 arguments"):
        unvectorize(f, in_axes=(0, 0))(np.ones(2))
    with pytest.raises(ValueError, match=r"out_axes.*2 outputs"):
        unvectorize(f, out_axes=(0,))(np.ones(2))
    with pytest.raises(TypeError, match="out_axes must be an int"):
        unvectorize(lambda x: x, out_axes=(0,))(np.ones(2))
    with pytest.raises(ValueError):
        unvectorize(lambda x: np.concatenate([x, x]))(np.ones(2))


def test_keeps_the_name_of_the_function():
    assert unvectorize(scale_and_sum).__name__ == "scale_and_sum"
