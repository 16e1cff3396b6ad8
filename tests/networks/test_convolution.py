"""conv_general_dilated against jax.lax."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from triax.networks import Conv, conv_general_dilated

NHWC = ("NHWC", "HWIO", "NHWC")
CASES = {
    "strides": ((2, 9, 8, 3), (3, 2, 3, 4), {"window_strides": (2, 3), "padding": "SAME"}),
    "valid": ((2, 9, 8, 3), (4, 4, 3, 4), {"window_strides": (1, 1), "padding": "VALID"}),
    "dilated": ((1, 12, 11, 2), (3, 3, 2, 2), {"window_strides": (1, 1), "padding": "SAME", "rhs_dilation": (2, 3)}),
    "transposed": (
        (2, 5, 5, 2),
        (3, 3, 2, 4),
        {"window_strides": (1, 1), "padding": ((2, 1), (1, 3)), "lhs_dilation": (2, 2)},
    ),
    "groups": ((3, 7, 7, 4), (3, 3, 2, 6), {"window_strides": (2, 2), "padding": "SAME", "feature_group_count": 2}),
    "one axis": ((3, 7, 4), (3, 4, 5), {"window_strides": (2,), "padding": "SAME"}),
    "channels first": ((2, 3, 9, 8), (4, 3, 3, 3), {"window_strides": (2, 1), "padding": "VALID"}),
}


def dimensions(name, shape):
    if name == "channels first":
        return ("NCHW", "OIHW", "NCHW")
    return NHWC if len(shape) == 4 else ("NWC", "WIO", "NWC")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("batched", [False, True])
def test_values_and_gradients_are_those_of_jax(name, batched):
    image, kernel, options = CASES[name]
    options = options | {"dimension_numbers": dimensions(name, image)}
    keys = jax.random.split(jax.random.key(0), 2)
    lead = (3,) if batched else ()
    x, w = jax.random.normal(keys[0], lead + image), jax.random.normal(keys[1], lead + kernel)

    def results(convolve):
        def loss(x, w):
            y = convolve(x, w, **options)
            return jnp.sum(jnp.sin(y)), y

        value_and_grad = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
        return jax.jit(jax.vmap(value_and_grad) if batched else value_and_grad)(x, w)

    expected = jax.tree.leaves(results(lax.conv_general_dilated))
    for found, leaf in zip(jax.tree.leaves(results(conv_general_dilated)), expected, strict=True):
        np.testing.assert_allclose(found, leaf, rtol=2e-5, atol=2e-5)


def test_second_derivatives_are_those_of_jax():
    x, w = jnp.arange(18.0).reshape(1, 3, 3, 2) / 9, jnp.arange(16.0).reshape(2, 2, 2, 2) / 7
    options = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": NHWC}

    def curvature(convolve):
        slope = jax.grad(lambda w: jnp.sum(convolve(x, w, **options) ** 3))
        return jax.grad(lambda w: jnp.sum(slope(w) ** 2))(w)

    np.testing.assert_allclose(curvature(conv_general_dilated), curvature(lax.conv_general_dilated), rtol=1e-5)


@pytest.mark.parametrize("layer", ["Conv", "nnx.Conv"])
def test_gradients_in_a_loop_are_channels_last_convolutions_only(layer):
    """The form for which XLA's CPU backend has a fast kernel."""
    rngs = nnx.Rngs(0)
    ours = {"conv_general_dilated": conv_general_dilated}
    conv = Conv(2, 4, 3, rngs) if layer == "Conv" else nnx.Conv(2, 4, (3, 3), rngs=rngs, **ours)
    graphdef, weights = nnx.split(conv)
    x = jnp.ones((2, 6, 6, 2))

    def loss(weights, x):
        module = nnx.merge(graphdef, weights)
        return jnp.sum((module((), x).output if layer == "Conv" else module(x)) ** 2)

    def step(weights, _):
        slopes = jax.grad(loss, argnums=(0, 1))(weights, x)
        return jax.tree.map(lambda w, slope: w - slope, weights, slopes[0]), jnp.sum(slopes[1])

    text = jax.jit(lambda w: lax.scan(step, w, length=2)).lower(weights).as_text()
    convolutions = [line for line in text.splitlines() if "stablehlo.convolution" in line]
    assert len(convolutions) == 3
    assert all("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" in line for line in convolutions)
