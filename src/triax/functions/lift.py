"""The four kinds of ``func``, told apart in one place and turned into one kind of pure function."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx

from triax.core.errors import MissingExtraError
from triax.core.keys import Key
from triax.core.modules import SplitModule
from triax.networks import StatefulModule

Carry = Any
"""What a function remembers within an episode: ``()`` for a memoryless one, else leaves ``[batch, ...]``."""


@dataclass(frozen=True)
class Lifted:
    """A ``func`` as pure functions of parameters.

    * ``init(rng, *inputs) -> (params, function_state)``
    * ``forward(params, function_state, rng, carry, *inputs, is_training) -> (output, carry, function_state)``;
      ``is_training`` is the last positional argument and static
    * ``initial_carry(params, function_state, rng, batch_size) -> carry``
    * ``reset_carry(params, function_state, rng, carry) -> carry``, all rows fresh
    """

    inputs: tuple[str, ...]
    init: Callable[..., tuple[Any, Any]]
    forward: Callable[..., tuple[Any, Carry, Any]]
    initial_carry: Callable[..., Carry]
    reset_carry: Callable[..., Carry]
    module: SplitModule | None = None


def lift(func: Any, *, owner: str, accepts: tuple[tuple[str, ...], ...], key: Key) -> Lifted:
    """Turn ``func`` into pure functions, whichever of the four kinds it is.

    Args:
        func: a Haiku-style function ``func(S, is_training)`` or ``func(S, A, is_training)``; a ``nnx.Module`` with
            such a ``__call__``; a callable that takes ``nnx.Rngs`` and returns a module; a ``StatefulModule``.
        owner: the class that asks, for messages.
        accepts: the inputs that are possible, e.g. ``(("S",), ("S", "A"))``.
        key: what a factory's ``nnx.Rngs`` is seeded with.

    Raises:
        TypeError: ``func`` is none of the four, or its parameters have other names.
        MissingExtraError: a Haiku-style function without Haiku installed.
    """
    if not callable(func):
        raise TypeError(
            f"{owner}: func must be a function, a flax.nnx.Module or a factory of one; got {type(func).__name__}."
        )
    if _takes_rngs(func):
        func = _build(func, owner, key)
    if isinstance(func, StatefulModule):
        return _lift_stateful_module(func, accepts)
    if isinstance(func, nnx.Module):
        return _lift_module(func, _input_names(func.__call__, owner, accepts))
    return _lift_haiku(func, _input_names(func, owner, accepts), owner)


def _takes_rngs(func: Any) -> bool:
    """A factory has one parameter without default, called ``rngs`` or annotated so."""
    if isinstance(func, nnx.Module):
        return False
    required = _required(func)
    return len(required) == 1 and (
        required[0].name == "rngs" or required[0].annotation in (nnx.Rngs, "nnx.Rngs", "Rngs")
    )


def _build(factory: Callable, owner: str, key: Key) -> nnx.Module:
    name = _required(factory)[0].name
    module = factory(**{name: nnx.Rngs(jax.random.wrap_key_data(key))})
    if not isinstance(module, nnx.Module):
        raise TypeError(
            f"{owner}: func takes nnx.Rngs, so it must return a flax.nnx.Module; got {type(module).__name__}."
        )
    return module


def _required(func: Callable) -> list[inspect.Parameter]:
    if isinstance(func, type):  # the metaclass of modules hides the signature of their constructor
        parameters = list(inspect.signature(func.__init__).parameters.values())[1:]
    else:
        parameters = list(inspect.signature(func).parameters.values())
    return [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _input_names(call: Callable, owner: str, accepts: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The array inputs of ``call``; parameters with a default are the user's own and stay at it."""
    found = tuple(p.name for p in _required(call))
    for inputs in accepts:
        if found == (*inputs, "is_training"):
            return inputs
    signatures = " or ".join(f"func({', '.join((*inputs, 'is_training'))})" for inputs in accepts)
    raise TypeError(
        f"{owner}: the parameters of func must be {signatures}; got ({', '.join(found)})." + _hint(found, accepts)
    )


def _hint(found: tuple[str, ...], accepts: tuple[tuple[str, ...], ...]) -> str:
    if found == ("S", "is_training") and accepts == (("S", "A"),):
        return " One output per action (type 2) needs a Discrete action space: take A as an input."
    if found == ("S", "A", "is_training"):
        return f" A {'state' if accepts == (('S',),) else 'type-1'} function gets no action here: drop A."
    return " Rename them (parameters with a default are left alone), or wrap func in a lambda."


def _no_carry(params: Any, function_state: Any, rng: Any, batch_size: int) -> Carry:
    return ()


def _keep_carry(params: Any, function_state: Any, rng: Any, carry: Carry) -> Carry:
    return carry


def _lift_haiku(func: Callable, inputs: tuple[str, ...], owner: str) -> Lifted:
    try:
        import haiku as hk
    except ImportError as error:
        raise MissingExtraError.of(f"{owner}: a plain function as func", "dm-haiku", "haiku") from error
    transformed = hk.transform_with_state(func)

    def forward(params: Any, function_state: Any, rng: Any, carry: Carry, *args: Any) -> tuple:
        output, function_state = transformed.apply(params, function_state, rng, *args)
        return output, carry, function_state

    return Lifted(inputs, transformed.init, forward, _no_carry, _keep_carry)


def _lift_module(module: nnx.Module, inputs: tuple[str, ...]) -> Lifted:
    split, params, variables = SplitModule.of(module)

    def init(rng: Any, *args: Any) -> tuple:
        return params, variables

    def forward(params: Any, function_state: Any, rng: Any, carry: Carry, *args: Any) -> tuple:
        merged: Any = split.merge(params, function_state, rng, is_training=args[-1])
        output = merged(*args)
        return output, carry, split.variables_of(merged)

    return Lifted(inputs, init, forward, _no_carry, _keep_carry, split)


def _lift_stateful_module(module: StatefulModule, accepts: tuple[tuple[str, ...], ...]) -> Lifted:
    """One input comes as it is, state and action as ``{"S": S, "A": A}``; one output per action if possible."""
    inputs = accepts[-1] if accepts == (("S", "A"),) else ("S",)
    split, params, variables = SplitModule.of(module)

    def init(rng: Any, *args: Any) -> tuple:
        return params, variables

    def forward(params: Any, function_state: Any, rng: Any, carry: Carry, *args: Any) -> tuple:
        merged: Any = split.merge(params, function_state, rng, is_training=args[-1])
        x = args[0] if inputs == ("S",) else dict(zip(inputs, args[:-1], strict=True))
        result = merged(carry, x)
        return result.output, result.next_state, split.variables_of(merged)

    def initial_carry(params: Any, function_state: Any, rng: Any, batch_size: int) -> Carry:
        merged: Any = split.merge(params, function_state, rng, is_training=False)
        return merged.initialize_state(batch_size)

    def reset_carry(params: Any, function_state: Any, rng: Any, carry: Carry) -> Carry:
        merged: Any = split.merge(params, function_state, rng, is_training=False)
        return merged.reset_state(carry)

    return Lifted(inputs, init, forward, initial_carry, reset_carry, split)
