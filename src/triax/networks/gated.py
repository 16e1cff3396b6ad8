"""Gated recurrences over sequences, with resets and a backward pass that multiplies once.

Automatic differentiation of a scan adds up the weights' gradients step by step. Here, at small batches, the
scan backwards gives only the gradients before the gates, and the weights' gradients are one product over all
steps; at large ones a step's product is efficient, and leaves nothing to be written and read again. The rest
is what XLA makes fast on CPUs (measured, ``benchmarks/unroll.py``): the input's projection stays inside the
scan, because slicing the projected array costs more than the small products; what the backward pass reads is
saved gate by gate, because loops over parts of a sliced array are not vectorized; and what can be computed
for all steps at once is.
"""

import abc
import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Shaped

from triax.core.sharding import per_device, summed

Carry = tuple[Array, ...]
"""Arrays ``[batch, hidden]``; the first is the hidden state that is multiplied with the recurrent kernel."""


class Weights(NamedTuple):
    """Kernels ``[features, gates * hidden]``, ``[hidden, gates * hidden]`` and biases of both projections."""

    kernel_x: Array
    kernel_h: Array
    bias_x: Array | None
    bias_h: Array | None = None

    def project_x(self, x: Array) -> Array:
        """What the gates get from the input."""
        return _plus(x @ self.kernel_x, self.bias_x)

    def project_h(self, h: Array) -> Array:
        """What the gates get from the hidden state."""
        return _plus(h @ self.kernel_h, self.bias_h)


def _plus(y: Array, bias: Array | None) -> Array:
    return y if bias is None else y + bias


def sigmoid(x: Any) -> Array:
    """``jax.nn.sigmoid``, as a function that pickle finds by its name."""
    return jax.nn.sigmoid(x)


def tanh(x: Any) -> Array:
    """``jax.numpy.tanh``, as a function that pickle finds by its name."""
    return jnp.tanh(x)


LARGE_BATCH = 32
"""From here on, the products of one step are large enough, and what they read is better still in the cache.
"""

_SLOPE_OF_VALUE: dict[Any, Callable[[Array], Array]] = {
    function: slope
    for functions, slope in (
        ((sigmoid, nnx.sigmoid, jax.nn.sigmoid), lambda s: s * (1.0 - s)),
        ((tanh, nnx.tanh, jax.nn.tanh, jnp.tanh), lambda t: 1.0 - t * t),
    )
    for function in functions
}


@dataclass(frozen=True)
class Elementwise:
    """An elementwise function that saves what its derivative needs: its value where that is enough, else its
    input.
    """

    function: Callable[[Any], Any]

    def value_and_saved(self, y: Array) -> tuple[Array, Array]:
        """The value at ``y``, and what to keep for :meth:`value_and_slope`."""
        value = self.function(y)
        return value, value if self.function in _SLOPE_OF_VALUE else y

    def value_and_slope(self, saved: Array) -> tuple[Array, Array]:
        """Value and derivative."""
        slope = _SLOPE_OF_VALUE.get(self.function)
        if slope is not None:
            return saved, slope(saved)
        return jax.jvp(self.function, (saved,), (jnp.ones_like(saved),))


class Cell(abc.ABC):
    """The gates of a recurrent cell: what happens to both projections, forwards and backwards."""

    @abc.abstractmethod
    def forward(self, from_x: Array, from_h: Array, carry: Carry) -> tuple[Carry, tuple[Array, ...]]:
        """The next carry, and what the backward pass needs of this step."""

    @abc.abstractmethod
    def prepare(self, saved: Any, carries: Carry) -> Any:
        """What can be computed for all steps at once, before the scan backwards; ``carries`` are those after
        steps.
        """

    @abc.abstractmethod
    def backward(self, saved: Any, before: Carry, d_carry: Carry) -> tuple[Array, Any, Carry]:
        """From the gradient of the next carry: those of ``from_h``, of what else ``from_x`` needs, and of
        ``before``.

        The way through the recurrent kernel is not part of the third one.
        """

    @abc.abstractmethod
    def gradient_of_x(self, d_from_h: Array, rest: Any) -> Array:
        """The gradient of ``from_x``, for all steps at once."""


@dataclass(frozen=True)
class LSTMGates(Cell):
    """Gates i, f, g, o; the carry is ``(h, c)``."""

    gate: Elementwise
    activation: Elementwise

    def forward(self, from_x: Array, from_h: Array, carry: Carry) -> tuple[Carry, tuple[Array, ...]]:
        """See :class:`Cell`."""
        y_i, y_f, y_g, y_o = jnp.split(from_x + from_h, 4, axis=-1)
        i, saved_i = self.gate.value_and_saved(y_i)
        f, saved_f = self.gate.value_and_saved(y_f)
        g, saved_g = self.activation.value_and_saved(y_g)
        o, saved_o = self.gate.value_and_saved(y_o)
        c = f * carry[1] + i * g
        return (o * self.activation.function(c), c), (saved_i, saved_f, saved_g, saved_o)

    def prepare(self, saved: Any, carries: Carry) -> Any:
        """See :class:`Cell`."""
        return (*saved, self.activation.value_and_saved(carries[1])[1])

    def backward(self, saved: Any, before: Carry, d_carry: Carry) -> tuple[Array, Any, Carry]:
        """See :class:`Cell`."""
        i, slope_i = self.gate.value_and_slope(saved[0])
        f, slope_f = self.gate.value_and_slope(saved[1])
        g, slope_g = self.activation.value_and_slope(saved[2])
        o, slope_o = self.gate.value_and_slope(saved[3])
        t, slope_t = self.activation.value_and_slope(saved[4])
        d_h, d_c = d_carry[0], d_carry[1] + d_carry[0] * o * slope_t
        d_y = (d_c * g * slope_i, d_c * before[1] * slope_f, d_c * i * slope_g, d_h * t * slope_o)
        *d_y, d_before = _where_any(d_carry, (*d_y, d_c * f))
        return jnp.concatenate(d_y, axis=-1), (), (jnp.zeros_like(d_h), d_before)

    def gradient_of_x(self, d_from_h: Array, rest: Any) -> Array:
        """See :class:`Cell`."""
        return d_from_h


@dataclass(frozen=True)
class GRUGates(Cell):
    """Gates r, z, n; the carry is ``(h,)``."""

    gate: Elementwise
    activation: Elementwise

    def forward(self, from_x: Array, from_h: Array, carry: Carry) -> tuple[Carry, tuple[Array, ...]]:
        """See :class:`Cell`."""
        (x_r, x_z, x_n), (h_r, h_z, h_n) = jnp.split(from_x, 3, axis=-1), jnp.split(from_h, 3, axis=-1)
        r, saved_r = self.gate.value_and_saved(x_r + h_r)
        z, saved_z = self.gate.value_and_saved(x_z + h_z)
        n, saved_n = self.activation.value_and_saved(x_n + r * h_n)
        return ((1.0 - z) * n + z * carry[0],), (saved_r, saved_z, saved_n, h_n)

    def prepare(self, saved: Any, carries: Carry) -> Any:
        """See :class:`Cell`."""
        return saved

    def backward(self, saved: Any, before: Carry, d_carry: Carry) -> tuple[Array, Any, Carry]:
        """See :class:`Cell`."""
        r, slope_r = self.gate.value_and_slope(saved[0])
        z, slope_z = self.gate.value_and_slope(saved[1])
        n, slope_n = self.activation.value_and_slope(saved[2])
        d_h = d_carry[0]
        d_n = d_h * (1.0 - z) * slope_n
        d_y = (d_n * saved[3] * slope_r, d_h * (before[0] - n) * slope_z, d_n * r)
        *d_y, d_n, d_before = _where_any(d_carry, (*d_y, d_n, d_h * z))
        return jnp.concatenate(d_y, axis=-1), d_n, (d_before,)

    def gradient_of_x(self, d_from_h: Array, rest: Any) -> Array:
        """See :class:`Cell`."""
        return jnp.concatenate([d_from_h[..., : -rest.shape[-1]], rest], axis=-1)


def _where_any(d_carry: Carry, gradients: tuple[Array, ...]) -> tuple[Array, ...]:
    """The gradients, and zero where that of the carry is zero, even if what it was multiplied with is not finite."""
    some = functools.reduce(jnp.logical_or, (d != 0 for d in d_carry))
    return tuple(jnp.where(some, gradient, 0.0) for gradient in gradients)


def gated_unroll(
    cell: Cell,
    weights: Weights,
    xs: Shaped[Array, "time batch features"],
    resets: Bool[Array, "time batch"],
    carry: Carry,
    initial: Carry | None,
) -> tuple[Carry, Float[Array, "time batch hidden"]]:
    """The carry after the last step and the hidden states of all.

    Where an episode starts the carry is ``initial``, arrays ``[hidden]`` that get gradients, or zero for
    ``None``.
    """
    xs = xs.astype(jnp.result_type(xs, weights.kernel_x))
    return _unroll(cell, weights, xs, resets, carry, initial)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _unroll(cell: Cell, weights: Any, xs: Any, resets: Any, carry: Any, initial: Any) -> Any:
    return _forward(cell, weights, xs, resets, carry, initial)[0]


def _forward(cell: Cell, weights: Any, xs: Any, resets: Any, carry: Any, initial: Any) -> Any:
    def step(carry: Carry, inputs: Any) -> Any:
        x, reset = inputs
        carry = _restart(reset, carry, initial)
        carry, saved = cell.forward(weights.project_x(x), weights.project_h(carry[0]), carry)
        return carry, (saved, carry)

    last, (saved, carries) = jax.lax.scan(step, carry, (xs, resets))
    return (last, carries[0]), (weights, xs, resets, carry, initial, saved, carries)


def _restart(reset: Bool[Array, "*axes"], carry: Carry, initial: Carry | None) -> Carry:
    fresh = (0.0,) * len(carry) if initial is None else initial
    return tuple(jnp.where(reset[..., None], new, old) for new, old in zip(fresh, carry, strict=True))


def _backward(cell: Cell, kept: Any, cotangents: Any) -> Any:
    """Over several devices, each scans its own rows, and gradients of weights are summed once, after the scan."""
    weights, xs, resets, first, initial, saved, carries = kept
    rows = xs, resets, saved, carries, cotangents[1]
    gradients = per_device(partial(_gradients, cell), (None, None, 0, 0, 1), (None, 1, 0, None))
    d_weights, d_xs, d_first, d_initial = gradients(weights, initial, first, cotangents[0], rows)
    return d_weights, d_xs, None, d_first, d_initial


def _gradients(cell: Cell, weights: Weights, initial: Any, first: Carry, d_last: Carry, rows: tuple) -> tuple:
    """With respect to weights, inputs, the first carry and the initial one."""
    xs, resets, saved, carries, d_hs = rows
    before = tuple(jnp.concatenate([f[None], c[:-1]]) for f, c in zip(first, carries, strict=True))
    before = _restart(resets, before, initial)
    transposed = weights.kernel_h.T

    def step(d_carry: Carry, inputs: Any) -> Any:
        d_h, saved, before, reset = inputs
        d_from_h, rest, d_before = cell.backward(saved, before, (d_carry[0] + d_h, *d_carry[1:]))
        d_before = (d_before[0] + d_from_h @ transposed, *d_before[1:])
        cut = None if initial is None else _restart(~reset, d_before, None)
        return _restart(reset, d_before, None), (d_from_h, rest, cut)

    def step_and_products(sums: Any, inputs: Any) -> Any:
        d_carry, (d_from_h, rest, cut) = step(sums[0], inputs[0])
        d_weights, d_x = _products(cell, weights, inputs[1], inputs[0][2][0], d_from_h, rest)
        return (d_carry, jax.tree.map(jnp.add, sums[1], d_weights)), (d_x, cut)

    steps = (d_hs, cell.prepare(saved, carries), before, resets)
    if resets.shape[1] >= LARGE_BATCH:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        sums, (d_xs, cuts) = jax.lax.scan(step_and_products, (d_last, zeros), (steps, xs), reverse=True)
        d_first, d_weights = sums
    else:
        d_first, (d_from_h, rest, cuts) = jax.lax.scan(step, d_last, steps, reverse=True)
        d_weights, d_xs = _products(cell, weights, xs, before[0], d_from_h, rest)
    d_initial = None if initial is None else tuple(cut.sum((0, 1)) for cut in cuts)
    return summed(d_weights), d_xs, d_first, summed(d_initial)


def _products(cell: Cell, weights: Weights, xs: Array, hs: Array, d_from_h: Array, rest: Any) -> Any:
    """Gradients of weights and inputs: one matrix product each, over all the steps that are given."""
    rows, h_rows, d_h, rest = jax.tree.map(lambda a: jnp.reshape(a, (-1, a.shape[-1])), (xs, hs, d_from_h, rest))
    d_x = cell.gradient_of_x(d_h, rest)
    bias_x, bias_h = (None if b is None else d.sum(0) for b, d in zip(weights[2:], (d_x, d_h), strict=True))
    d_weights = Weights(rows.T @ d_x, h_rows.T @ d_h, bias_x, bias_h)
    return d_weights, jnp.reshape(d_x @ weights.kernel_x.T, xs.shape)


_unroll.defvjp(_forward, _backward)
