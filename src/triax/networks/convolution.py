"""A convolution whose gradients are fast inside compiled loops on the CPU too."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Array, Num


def conv_general_dilated(
    lhs: Num[Array, "batch *image"], rhs: Num[Array, "*kernel"], *args: Any, **kwargs: Any
) -> Num[Array, "batch *output"]:
    """``jax.lax.conv_general_dilated``, with gradients that stay fast inside ``scan`` and ``while_loop`` on the CPU.

    XLA's CPU backend has a fast kernel for channels-last convolutions only, and brings others into that form at
    the top level of a program, but not in a loop's body, where the gradients of a convolution take about twelve
    times as long (https://github.com/jax-ml/jax/issues/12868). Here they are written in that form. Arguments and
    values are those of ``jax.lax``; channels should come last (``NHWC``). :class:`Conv` uses it; give it to a layer of
    your own by ``nnx.Conv(..., conv_general_dilated=triax.networks.conv_general_dilated)``.

    Reverse mode only: ``jax.jvp`` of it raises ``TypeError``.
    """

    def plain(lhs: Array, rhs: Array) -> Array:
        return lax.conv_general_dilated(lhs, rhs, *args, **kwargs)

    def backward(operands: tuple[Array, Array], cotangent: Array) -> tuple:
        def gradients(lhs: Array, rhs: Array, cotangent: Array) -> tuple:
            return jax.vjp(plain, lhs, rhs)[1](cotangent)

        return tuple(_with_channels_last(jax.make_jaxpr(gradients)(*operands, cotangent), *operands, cotangent))

    convolve = jax.custom_vjp(plain)
    convolve.defvjp(lambda lhs, rhs: (plain(lhs, rhs), (lhs, rhs)), backward)
    return convolve(lhs, rhs)


def _with_channels_last(traced: ClosedJaxpr, *args: Array) -> list[Array]:
    """What was traced, with each convolution in it channels last."""
    values = dict(zip(traced.jaxpr.constvars, traced.consts, strict=True))
    values |= dict(zip(traced.jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in traced.jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        if equation.primitive is lax.conv_general_dilated_p:
            results = [_channels_last(*operands, **equation.params)]
        else:
            bound = equation.primitive.bind(*operands, **equation.params)
            results = bound if equation.primitive.multiple_results else [bound]
        values |= dict(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in traced.jaxpr.outvars]


def _channels_last(lhs: Array, rhs: Array, *, dimension_numbers: lax.ConvDimensionNumbers, **params: Any) -> Array:
    """The same convolution of transposed operands, transposed back."""
    n = lhs.ndim
    batch, features, *space = range(n)
    image = (batch, *space, features)
    specs = lax.ConvDimensionNumbers(
        (0, n - 1, *range(1, n - 1)), (n - 1, n - 2, *range(n - 2)), (0, n - 1, *range(1, n - 1))
    )
    lhs_axes = [dimension_numbers.lhs_spec[i] for i in image]
    out_axes = [dimension_numbers.out_spec[i] for i in image]
    out, inputs, *window = dimension_numbers.rhs_spec
    convolved = lax.conv_general_dilated_p.bind(
        jnp.transpose(lhs, lhs_axes), jnp.transpose(rhs, (*window, inputs, out)), dimension_numbers=specs, **params
    )
    return jnp.transpose(convolved, [out_axes.index(i) for i in range(n)])
