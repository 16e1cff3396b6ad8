"""Any module or function on arrays as a layer without memory."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool

from triax.core import random
from triax.networks.arguments import check_instance
from triax.networks.inputs import as_float, check_carry, check_old_carry, check_rows
from triax.networks.module import StatefulModule
from triax.networks.randomness import key_chain, own_stream, reseed, split_keys
from triax.networks.types import ModuleState, SizeError, StatefulModuleOutput
from triax.networks.unrolling import check_sequence
from triax.networks.widths import accepted_width, check_width


def plain(output: Any, next_state: ModuleState = (), axes: tuple[int, ...] | None = None) -> StatefulModuleOutput:
    """The output of a layer that has neither loss nor metrics nor extras.

    The loss is zeros of the shape ``axes``; by default ``[batch]`` with a carry and a scalar without.
    """
    if axes is None:
        axes = next((jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(next_state)), ())
    return StatefulModuleOutput(next_state, output, jnp.zeros(axes), {})


class Stateless(StatefulModule):
    """A function of arrays or an ``nnx.Module`` with one input, as a layer: ``[batch, ...] -> [batch, ...]``.

    If the callable has a parameter ``is_training``, it is passed: true unless the network is in ``eval()``
    mode.
    """

    deterministic = False

    def __init__(self, layer: Callable[..., Any]):
        self.layer: Any = layer
        self.takes_mode = _takes_mode(layer)

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        y = self.apply(self.layer, x)
        check_rows(name_of(self.layer), y)
        return plain(y)

    def apply(self, layer: Callable[..., Any], x: Any) -> Any:
        """``layer`` on ``x``, told about the mode if it wants to know."""
        check_width(layer, x)
        mode = {"is_training": not self.deterministic} if self.takes_mode else {}
        try:
            return layer(x, **mode)
        except Exception as error:
            name = name_of(layer)
            if "hk.transform" in str(error):
                raise TypeError(
                    f"{name} is made of Haiku's modules, and a network must know their parameters. "
                    f"Put triax.networks.HaikuLayer({name}, sample_input, rngs) in its place."
                ) from error
            expected = accepted_width(layer, x, mode)
            if expected is None:
                raise
            raise SizeError(name, expected, jnp.shape(x)[-1]) from error


class Stochastic(Stateless):
    """An ``nnx.Module`` that draws random numbers (dropout), with noise that a replay reproduces.

    The carry is one key an environment, which resets keep; each environment is passed through the module on
    its own, as a batch of one. So noise depends neither on the batch nor on how often other layers drew.
    Raises ``ValueError`` for a module that also writes other variables, such as batch statistics.
    """

    def __init__(self, layer: nnx.Module):
        super().__init__(layer)
        keys = nnx.state(layer, nnx.RngKey)
        seed = jax.tree.leaves(keys)[0]
        self.stream = own_stream("Stochastic", nnx.RngStream(seed, tag="noise"), "noise")

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        self._check(state, x, 1)
        state, keys = split_keys(state)
        return plain(self._with_noise(keys, x), state)

    def initialize_state(self, batch_size: int) -> ModuleState:
        """Keys ``[batch]``, drawn from the module's stream."""
        return random.split(self.stream(), batch_size)

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """The same keys: noise does not repeat from episode to episode."""
        check_old_carry(self, prev_state, [()])
        return prev_state

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence: only the keys are chained, the module runs once."""
        check_sequence(self, state, xs, resets)
        self._check(state, xs, 2)
        state, keys = key_chain(state, resets.shape[0])
        return plain(jax.vmap(self._with_noise)(keys, xs), state, resets.shape)

    def _check(self, state: ModuleState, x: Any, axes: int) -> None:
        """Refuse inputs that do not all begin with the same ``axes``, or a carry of another batch."""
        leads = {jnp.shape(leaf)[:axes] for leaf in jax.tree.leaves(x)}
        if len(leads) != 1 or len(lead := leads.pop()) < axes:
            got = jax.tree.map(lambda leaf: list(jnp.shape(leaf)), x)
            raise ValueError(f"{name_of(self.layer)}: takes arrays [batch, ...], all of one batch; got {got}.")
        check_carry(self, state, [()], lead[-1:])

    def _with_noise(self, keys: Array, x: Any) -> Any:
        graphdef, rngs, variables = nnx.split(self.layer, nnx.RngState, ...)

        def one(key: Array, x: Any) -> Any:
            layer = nnx.merge(graphdef, rngs, variables, copy=True)
            reseed(layer, key)
            rows = jax.tree.map(lambda leaf: leaf[None], x)
            y = self.apply(layer, jax.tree.map(as_float, rows) if isinstance(layer, nnx.Dropout) else rows)
            after = jax.tree.leaves(nnx.split(layer, nnx.RngState, ...)[2])
            if any(a is not b for a, b in zip(after, jax.tree.leaves(variables), strict=True)):
                raise ValueError(
                    f"Stochastic: {type(self.layer).__name__} draws noise and writes other variables in one "
                    "call. "
                    "Split it into layers that do one of both."
                )
            return jax.tree.map(lambda leaf: leaf[0], y)

        return jax.vmap(one)(keys, x)


@functools.singledispatch
def as_module(layer: Any) -> StatefulModule:
    """What stands for a layer in a container, as a :class:`StatefulModule`; raises ``TypeError`` for other
    things.
    """
    check_instance(layer)
    if not callable(layer):
        raise TypeError(
            "a layer must be a StatefulModule, an nnx.Module or a function of arrays; got "
            f"{type(layer).__name__}. "
            "Wrap lists of layers in Sequential([...]) and dicts of them in Parallel({...}) or Map({...})."
        )
    return Stateless(layer)


@as_module.register
def _(layer: StatefulModule) -> StatefulModule:
    return layer


@as_module.register(nnx.RNNCellBase)
@as_module.register(nnx.RNN)
@as_module.register(nnx.Bidirectional)
def _(layer: Any) -> StatefulModule:
    name = type(layer).__name__
    raise TypeError(
        f"a layer has its carry from the network, which steps it; {name} takes "
        f"{'one of its own' if isinstance(layer, nnx.RNNCellBase) else 'whole sequences'}. "
        f"Put triax.networks.{'GRU' if isinstance(layer, nnx.GRUCell) else 'LSTM'}(in_features, hidden_features, rngs) "
        "in its place, or GRU, LRU, MinGRU; for another cell write a StatefulModule that calls it."
    )


@as_module.register
def _(layer: nnx.Module) -> StatefulModule:
    draws = jax.tree.leaves(nnx.state(layer, nnx.RngState))
    return Stochastic(layer) if draws else Stateless(layer)


def name_of(layer: Any) -> str:
    """What a layer is called in messages: the name of its function or class."""
    layer = layer.layer if isinstance(layer, Stateless) else layer
    return getattr(layer, "__name__", type(layer).__name__)


def declared_features(layer: StatefulModule, which: str) -> int | None:
    """The width that a layer declares in an attribute, as ``Dense`` or ``nnx.Linear`` do."""
    width = getattr(layer.layer if isinstance(layer, Stateless) else layer, which, None)
    return int(width) if isinstance(width, int | np.integer) else None


def _takes_mode(layer: Callable[..., Any]) -> bool:
    try:
        return "is_training" in inspect.signature(layer).parameters
    except ValueError:  # some NumPy and JAX functions have no signature
        return False
