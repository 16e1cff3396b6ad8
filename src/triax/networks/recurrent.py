"""LSTM and GRU: flax's cells step by step, one fused recurrence for sequences."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from triax.networks.arguments import Activation, as_function, check_layer
from triax.networks.gated import Elementwise, GRUGates, LSTMGates, Weights, gated_unroll, sigmoid, tanh
from triax.networks.inputs import check_carry, check_features, check_old_carry
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, StatefulModuleOutput
from triax.networks.unrolling import check_sequence

Initializer = Callable[..., Any]


class LSTMCarry(NamedTuple):
    """The carry of an :class:`LSTM`, in this order; both ``[batch, hidden]`` float32."""

    h: Array
    """Hidden state, which is also the output."""
    c: Array
    """Cell state."""


class LSTM(StatefulModule):
    r"""Long short-term memory, ``[batch, in_features] -> [batch, hidden_features]``.

    ``i, f, o = gate_fn(W x + U h + b)``, ``g = activation_fn(...)``, ``c' = f c + i g``,
    ``h' = o activation_fn(c')``; the output is ``h'``. ``use_optimized`` chooses between flax's
    ``nnx.OptimizedLSTMCell`` and ``nnx.LSTMCell`` for the parameters; initialisers that are ``None`` are the
    cell's own (LeCun normal, orthogonal, zeros). The carry starts at zero, or, with
    ``trainable_initial_state``, at the parameters ``initial_h`` and ``initial_c`` ``[hidden]``, zero at
    first; these get gradients from every reset of a sequence, one at its first step included.

    With the default functions the layer can be pickled; JAX's compiled ones (``nnx.relu``, or by name, ``"relu"``)
    cannot, by anything but
    cloudpickle: give a function of your own module that calls them.

    ``unroll`` has a backward pass of its own, so forward-mode differentiation (``jax.jvp``) through it is
    refused. Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.
    """

    def __init__(  # noqa: PLR0913 (the contract's)
        self,
        in_features: int,
        hidden_features: int,
        rngs: nnx.Rngs,
        *,
        gate_fn: Activation = sigmoid,
        activation_fn: Activation = tanh,
        kernel_init: Initializer | None = None,
        recurrent_kernel_init: Initializer | None = None,
        bias_init: Initializer | None = None,
        use_optimized: bool = True,
        trainable_initial_state: bool = False,
    ):
        sizes = check_layer("LSTM", rngs, in_features=in_features, hidden_features=hidden_features)
        self.in_features, self.hidden_features = in_features, hidden_features = sizes
        self.out_features = hidden_features
        gate_fn = as_function("LSTM", "gate_fn", gate_fn)
        activation_fn = as_function("LSTM", "activation_fn", activation_fn)
        self.gates = LSTMGates(Elementwise(gate_fn), Elementwise(activation_fn))
        inits = _given(kernel_init, recurrent_kernel_init, bias_init)
        cell = nnx.OptimizedLSTMCell if use_optimized else nnx.LSTMCell
        self.use_optimized = use_optimized
        self.cell = cell(in_features, hidden_features, gate_fn=gate_fn, activation_fn=activation_fn, rngs=rngs, **inits)
        self.trainable_initial_state = trainable_initial_state
        if trainable_initial_state:
            self.initial_h = nnx.Param(jnp.zeros(hidden_features))
            self.initial_c = nnx.Param(jnp.zeros(hidden_features))

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        check_features(self, x, self.in_features)
        check_carry(self, state, [(self.hidden_features,)] * 2, jnp.shape(x)[:-1])
        h, c = state
        (c, h), output = self.cell((c, h), jnp.asarray(x))
        return plain(output, LSTMCarry(h, c))

    def initialize_state(self, batch_size: int) -> LSTMCarry:
        """Zeros, or the trained initial state."""
        return self._fresh((batch_size,))

    def reset_state(self, prev_state: ModuleState) -> LSTMCarry:
        """Zeros, or the trained initial state."""
        return self._fresh(check_old_carry(self, prev_state, [(self.hidden_features,)] * 2))

    def _fresh(self, lead: tuple[int, ...]) -> LSTMCarry:
        shape = (*lead, self.hidden_features)
        initial = self._initial() or (jnp.zeros(self.hidden_features),) * 2
        return LSTMCarry(*(jnp.broadcast_to(value, shape) for value in initial))

    def _initial(self) -> tuple[Array, Array] | None:
        return (self.initial_h[...], self.initial_c[...]) if self.trainable_initial_state else None

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence; only the recurrent part is scanned."""
        check_sequence(self, state, xs, resets)
        check_features(self, xs, self.in_features)
        check_carry(self, state, [(self.hidden_features,)] * 2, jnp.shape(xs)[1:-1])
        carry = (state[0], state[1])
        carry, hs = gated_unroll(self.gates, self._weights(), jnp.asarray(xs), resets, carry, self._initial())
        return plain(hs, LSTMCarry(*carry), resets.shape)

    def _weights(self) -> Weights:
        """With the gates i, f, g, o side by side."""
        cell: Any = self.cell
        if self.use_optimized:
            return Weights(cell.dense_i.kernel[...], cell.dense_h.kernel[...], cell.dense_h.bias[...])
        inputs, hidden = (cell.ii, cell.if_, cell.ig, cell.io), (cell.hi, cell.hf, cell.hg, cell.ho)
        kernel_x, kernel_h = (jnp.concatenate([p.kernel[...] for p in parts], -1) for parts in (inputs, hidden))
        return Weights(kernel_x, kernel_h, jnp.concatenate([part.bias[...] for part in hidden], -1))


class GRU(StatefulModule):
    """Gated recurrent unit, ``[batch, in_features] -> [batch, hidden_features]``.

    ``r, z = gate_fn(W x + U h + b)``, ``n = activation_fn(W x + b + r (U h))``, ``h' = (1 - z) n + z h``;
    parameters are those of ``nnx.GRUCell``. The carry is ``h``, ``[batch, hidden]``; all options are those of
    :class:`LSTM`. Source: Cho et al. 2014, arXiv:1406.1078, in the variant of cuDNN.
    """

    def __init__(  # noqa: PLR0913 (the contract's)
        self,
        in_features: int,
        hidden_features: int,
        rngs: nnx.Rngs,
        *,
        gate_fn: Activation = sigmoid,
        activation_fn: Activation = tanh,
        kernel_init: Initializer | None = None,
        recurrent_kernel_init: Initializer | None = None,
        bias_init: Initializer | None = None,
        trainable_initial_state: bool = False,
    ):
        sizes = check_layer("GRU", rngs, in_features=in_features, hidden_features=hidden_features)
        self.in_features, self.hidden_features = in_features, hidden_features = sizes
        self.out_features = hidden_features
        gate_fn = as_function("GRU", "gate_fn", gate_fn)
        activation_fn = as_function("GRU", "activation_fn", activation_fn)
        self.gates = GRUGates(Elementwise(gate_fn), Elementwise(activation_fn))
        inits = _given(kernel_init, recurrent_kernel_init, bias_init)
        self.cell = nnx.GRUCell(
            in_features, hidden_features, gate_fn=gate_fn, activation_fn=activation_fn, rngs=rngs, **inits
        )
        self.trainable_initial_state = trainable_initial_state
        if trainable_initial_state:
            self.initial_h = nnx.Param(jnp.zeros(hidden_features))

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        check_features(self, x, self.in_features)
        check_carry(self, state, [(self.hidden_features,)], jnp.shape(x)[:-1])
        h, output = self.cell(state, jnp.asarray(x))
        return plain(output, h)

    def initialize_state(self, batch_size: int) -> Float[Array, "batch hidden"]:
        """Zeros, or the trained initial state."""
        return self._fresh((batch_size,))

    def reset_state(self, prev_state: ModuleState) -> Float[Array, "*batch hidden"]:
        """Zeros, or the trained initial state."""
        return self._fresh(check_old_carry(self, prev_state, [(self.hidden_features,)]))

    def _fresh(self, lead: tuple[int, ...]) -> Array:
        initial = self._initial() or (jnp.zeros(self.hidden_features),)
        return jnp.broadcast_to(initial[0], (*lead, self.hidden_features))

    def _initial(self) -> tuple[Array] | None:
        return (self.initial_h[...],) if self.trainable_initial_state else None

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence; only the recurrent part is scanned."""
        check_sequence(self, state, xs, resets)
        check_features(self, xs, self.in_features)
        check_carry(self, state, [(self.hidden_features,)], jnp.shape(xs)[1:-1])
        (h,), hs = gated_unroll(self.gates, self._weights(), jnp.asarray(xs), resets, (state,), self._initial())
        return plain(hs, h, resets.shape)

    def _weights(self) -> Weights:
        """With the gates r, z, n side by side."""
        inputs, hidden = self.cell.dense_i, self.cell.dense_h
        biases = (None if part.bias is None else part.bias[...] for part in (inputs, hidden))
        return Weights(inputs.kernel[...], hidden.kernel[...], *biases)


def _given(kernel: Initializer | None, recurrent: Initializer | None, bias: Initializer | None) -> dict[str, Any]:
    inits = {"kernel_init": kernel, "recurrent_kernel_init": recurrent, "bias_init": bias}
    return {name: init for name, init in inits.items() if init is not None}
