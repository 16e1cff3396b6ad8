"""The four kinds of ``func``, told apart in one place and turned into one kind of pure function."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from triax.core.errors import MissingExtraError
from triax.core.keys import Key, as_typed_key
from triax.core.modules import SplitModule, strong_copy
from triax.networks import StatefulModule
from triax.networks.unrolling import fold, unfold

Carry = Any
"""What a function remembers within an episode: ``()`` for a memoryless one, else leaves ``[batch, ...]``."""


class Unrolled(NamedTuple):
    """What a function gives along a sequence."""

    output: Any
    """Leaves ``[time, batch, ...]``."""
    carry: Carry
    """After the last step, not reset."""
    loss: Any
    """Regularization of a ``StatefulModule``, ``[time, batch]`` or a scalar; 0 for other functions."""
    function_state: Any


@dataclass(frozen=True)
class Lifted:
    """A ``func`` as pure functions of parameters.

    * ``init(rng, *inputs) -> (params, function_state)``
    * ``forward(params, function_state, rng, carry, *inputs, is_training) -> (output, carry, function_state)``;
      ``is_training`` is the last positional argument and static
    * ``initial_carry(params, function_state, rng, batch_size) -> carry``
    * ``reset_carry(params, function_state, rng, carry) -> carry``, all rows fresh
    * ``unroll(params, function_state, rng, carry, resets, *inputs, is_training) -> Unrolled``: along inputs
      ``[time, batch, ...]``; ``resets[t]`` says that an episode starts at step ``t``
    """

    inputs: tuple[str, ...]
    init: Callable[..., tuple[Any, Any]]
    forward: Callable[..., tuple[Any, Carry, Any]]
    initial_carry: Callable[..., Carry]
    reset_carry: Callable[..., Carry]
    unroll: Callable[..., Unrolled]
    module: SplitModule | None = None


def lift(func: Any, *, owner: str, accepts: tuple[tuple[str, ...], ...], key: Key) -> Lifted:
    """Turn ``func`` into pure functions, whichever of the four kinds it is.

    Args:
        func: a Haiku-style function ``func(S, is_training)`` or ``func(S, A, is_training)``; a ``nnx.Module`` with
            such a ``__call__``; a callable that takes ``nnx.Rngs`` and returns a module; a ``StatefulModule``, which
            gets ``S``, or ``{"S": S, "A": A}`` where actions are not ``Discrete``. Partials and callable objects
            serve as functions do. Further parameters must have defaults, and stay at them.
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
    if not isinstance(func, nnx.Module):
        parameters = _parameters(func, owner)
        if not _is_factory(parameters):
            return _lift_haiku(func, _input_names(func, parameters, owner, accepts), owner)
        func = _build(func, parameters, owner, key)
    if isinstance(func, StatefulModule):
        return _lift_stateful_module(func, accepts)
    call: Callable = func.__call__
    return _lift_module(func, _input_names(func, _parameters(call, owner), owner, accepts))


# ------------------------------------------------------------------ which kind

Parameters = list[inspect.Parameter]


def _parameters(func: Callable, owner: str) -> Parameters:
    """What is left to pass."""
    # The metaclass of modules hides the signature of their constructor.
    if isinstance(func, type):
        func = functools.partial(func.__init__, None)
    elif isinstance(func, functools.partial) and isinstance(func.func, type):
        func = functools.partial(func.func.__init__, None, *func.args, **func.keywords)
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError as error:
        raise TypeError(f"{owner}: func must have named parameters; {func!r} has no signature.") from error
    return list(parameters)


def _required(parameters: Parameters) -> Parameters:
    """Without ``*args`` and ``**kwargs``."""
    return [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _is_factory(parameters: Parameters) -> bool:
    """A factory has one parameter without default, called ``rngs`` or annotated so."""
    required = _required(parameters)
    return len(required) == 1 and (
        required[0].name == "rngs" or required[0].annotation in (nnx.Rngs, "nnx.Rngs", "Rngs")
    )


def _build(factory: Callable, parameters: Parameters, owner: str, key: Key) -> nnx.Module:
    (parameter,) = _required(parameters)
    rngs = nnx.Rngs(as_typed_key(key))
    is_positional = parameter.kind is parameter.POSITIONAL_ONLY
    module = factory(rngs) if is_positional else factory(**{parameter.name: rngs})
    if not isinstance(module, nnx.Module):
        raise TypeError(
            f"{owner}: func takes nnx.Rngs, so it must return a flax.nnx.Module; got {type(module).__name__}."
        )
    return module


def _input_names(
    func: Any, parameters: Parameters, owner: str, accepts: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    """The array inputs among the parameters; others with a default are the user's own."""
    required = {p.name for p in _required(parameters)}
    for inputs in accepts:
        wanted = (*inputs, "is_training")
        if tuple(p.name for p in parameters if p.name in wanted) == wanted and required <= set(wanted):
            return inputs
    found = tuple(p.name for p in _required(parameters))
    shown = ", ".join(str(p.replace(annotation=p.empty)) for p in parameters if p.default is p.empty)
    signatures = " or ".join(f"func({', '.join((*inputs, 'is_training'))})" for inputs in accepts)
    raise TypeError(
        f"{owner}: the parameters of func must be {signatures}; got ({shown})." + _hint(func, found, accepts)
    )


def _hint(func: Any, found: tuple[str, ...], accepts: tuple[tuple[str, ...], ...]) -> str:
    if isinstance(func, type):
        return " It is a class: pass an instance, or a factory such as lambda rngs: Net(..., rngs=rngs)."
    if found == ("S", "is_training") and accepts == (("S", "A"),):
        return " One output per action (type 2) needs a Discrete action space: take A as an input."
    if found == ("S", "A", "is_training"):
        return " A function of the state gets no action: drop A."
    if isinstance(func, nnx.Module):
        inputs, name = ", ".join(accepts[-1]), type(func).__name__
        return (
            f" These are those of {name}.__call__: put it into a module of your own with"
            f" def __call__(self, {inputs}, is_training), or into triax.networks.Sequential([...])."
        )
    if len(found) == 1:
        return " If it makes the network from nnx.Rngs, call its parameter rngs or annotate it: lambda rngs: Net(rngs)."
    return " Rename them (parameters with a default are left alone), or wrap func in a lambda."


def _by_name(call: Callable, inputs: tuple[str, ...]) -> Callable:
    """``call`` for inputs by position: between them it may have parameters that stay at their defaults."""
    names = (*inputs, "is_training")
    if any(p.kind is p.POSITIONAL_ONLY for p in inspect.signature(call).parameters.values()):
        return call
    return lambda *args: call(**dict(zip(names, args, strict=True)))


# ------------------------------------------------------------------ pure functions


def _no_carry(params: Any, function_state: Any, rng: Any, batch_size: int) -> Carry:
    return ()


def _keep_carry(params: Any, function_state: Any, rng: Any, carry: Carry) -> Carry:
    return carry


def unroll_rows(forward: Callable) -> Callable[..., Unrolled]:
    """``unroll`` of a memoryless function: time is one more batch axis."""

    def unroll(params: Any, function_state: Any, rng: Any, carry: Carry, resets: Any, *args: Any) -> Unrolled:
        *inputs, is_training = args
        output, _, function_state = forward(params, function_state, rng, (), *fold(inputs), is_training)
        return Unrolled(unfold(output, resets), carry, 0.0, function_state)

    return unroll


def _lift_haiku(func: Callable, inputs: tuple[str, ...], owner: str) -> Lifted:
    try:
        import haiku as hk
    except ImportError as error:
        raise MissingExtraError.of(f"{owner}: a plain function as func", "dm-haiku", "haiku") from error
    transformed = hk.transform_with_state(_by_name(func, inputs))

    def forward(params: Any, function_state: Any, rng: Any, carry: Carry, *args: Any) -> tuple:
        output, function_state = transformed.apply(params, function_state, rng, *args)
        return output, carry, function_state

    return Lifted(inputs, transformed.init, forward, _no_carry, _keep_carry, unroll_rows(forward))


def _lift_module(module: nnx.Module, inputs: tuple[str, ...]) -> Lifted:
    split, params, variables = SplitModule.of(module)

    def init(rng: Any, *args: Any) -> tuple:
        return params, variables

    def forward(params: Any, function_state: Any, rng: Any, carry: Carry, *args: Any) -> tuple:
        merged: Any = split.merge(params, function_state, rng, is_training=args[-1])
        output = _by_name(merged.__call__, inputs)(*args)
        return output, carry, split.variables_of(merged)

    return Lifted(inputs, init, forward, _no_carry, _keep_carry, unroll_rows(forward), split)


def _lift_stateful_module(module: StatefulModule, accepts: tuple[tuple[str, ...], ...]) -> Lifted:
    """State and action come as ``{"S": S, "A": A}``; one output per action wherever that is possible.

    A pass in training mode ends with ``update_statistics``: its own output comes from the statistics before it.
    """
    inputs = accepts[-1] if accepts == (("S", "A"),) else ("S",)
    split, params, variables = SplitModule.of(module)
    initial_carry, reset_carry = _carry_functions(split)
    skeleton = jax.eval_shape(lambda: initial_carry(params, variables, jax.random.PRNGKey(0), 1))
    has_memory = bool(jax.tree.leaves(skeleton))

    def init(rng: Any, *args: Any) -> tuple:
        return params, variables

    def forward(params: Any, function_state: Any, rng: Any, carry: Carry, *args: Any) -> tuple:
        merged: Any = split.merge(params, function_state, rng, is_training=args[-1])
        x = args[0] if inputs == ("S",) else dict(zip(inputs, args[:-1], strict=True))
        result = merged(carry if has_memory else skeleton, x)
        if args[-1]:
            _learn_statistics(merged, jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], result.rollout_extras))
        return result.output, result.next_state if has_memory else carry, split.variables_of(merged)

    def unroll(params: Any, function_state: Any, rng: Any, carry: Carry, resets: Any, *args: Any) -> Unrolled:
        merged: Any = split.merge(params, function_state, rng, is_training=args[-1])
        x = args[0] if inputs == ("S",) else dict(zip(inputs, args[:-1], strict=True))
        result = merged.unroll(carry if has_memory else skeleton, x, resets)
        carry = result.next_state if has_memory else carry
        if args[-1]:
            _learn_statistics(merged, result.rollout_extras)
        return Unrolled(result.output, carry, result.regularization_loss, split.variables_of(merged))

    if has_memory:
        return Lifted(inputs, init, forward, initial_carry, reset_carry, unroll, split)
    return Lifted(inputs, init, forward, _no_carry, _keep_carry, unroll, split)


def _learn_statistics(module: StatefulModule, rollout_extras: Any) -> None:
    """Running statistics take in what a pass saw, ``[time, batch, ...]``; no gradient flows through them."""
    module.update_statistics(jax.lax.stop_gradient(rollout_extras))


def _carry_functions(split: SplitModule) -> tuple[Callable, Callable]:
    """``initial_carry`` and ``reset_carry`` of a ``StatefulModule``."""

    def initial_carry(params: Any, function_state: Any, rng: Any, batch_size: int) -> Carry:
        merged: Any = split.merge(params, function_state, rng, is_training=False)
        return strong_copy(merged.initialize_state(batch_size))

    def reset_carry(params: Any, function_state: Any, rng: Any, carry: Carry) -> Carry:
        merged: Any = split.merge(params, function_state, rng, is_training=False)
        return merged.reset_state(carry)

    return initial_carry, reset_carry
