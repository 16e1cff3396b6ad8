"""Checks of what layers are made from, beside those of :mod:`triax.core.numbers`: who, what is wanted, what came."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import jax
from flax import nnx
from jax.core import Tracer

from triax.core.numbers import check_count, check_number

Activation = str | Callable[..., Any]
"""A function of one array, or the name of one in :mod:`jax.nn`: one of ``ACTIVATIONS``."""

ACTIVATIONS = (
    *("celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu"),
    *("log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax"),
    *("softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh"),
)
"""Names of the functions of :mod:`jax.nn` that keep the shape, which stand for them wherever layers take one."""


def as_activation(who: str, name: str, value: Any) -> Callable[..., Any] | None:
    """The function that is meant: a name becomes that of :mod:`jax.nn`, functions and ``None`` pass.

    Raises ``KeyError`` for an unknown name, with the nearest ones, and ``TypeError`` for what is no function.
    """
    if isinstance(value, str):
        if value not in ACTIVATIONS:
            near = difflib.get_close_matches(value.lower(), ACTIVATIONS, n=3) or ACTIVATIONS
            raise KeyError(
                f"{who}: {name} must be a function or a name of one in jax.nn, such as {', '.join(map(repr, near))}; "
                f"got {value!r}."
            )
        return getattr(jax.nn, value)
    if value is None or (callable(value) and not _is_module_class(value)):
        return value
    raise TypeError(f"{who}: {name} must be a function of one array, such as nnx.relu, or its name; got {value!r}.")


def as_function(who: str, name: str, value: Any) -> Callable[..., Any]:
    """As :func:`as_activation`, where one is needed."""
    if value is None:
        raise TypeError(f"{who}: {name} must be a function of one array, such as nnx.tanh, or its name; got None.")
    return as_activation(who, name, value)  # pyright: ignore[reportReturnType]


def _is_module_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, nnx.Module)


def check_instance(layer: Any) -> None:
    """``TypeError`` for a class of layers in place of one."""
    if _is_module_class(layer):
        name = layer.__name__
        raise TypeError(f"a layer must be a module, not its class; got the class {name}. Make one: {name}(...).")


def check_rngs(who: str, name: str, rngs: Any, *kinds: type) -> Any:
    """``rngs`` if it is an ``nnx.Rngs``, or one of ``kinds``; otherwise ``TypeError``."""
    if isinstance(rngs, (nnx.Rngs, *kinds)):
        return rngs
    hint = f"nnx.Rngs({rngs})" if isinstance(rngs, int) and not isinstance(rngs, bool) else "nnx.Rngs(0)"
    got = repr(rngs) if isinstance(rngs, int | None) else f"a {type(rngs).__name__}"
    wanted = " or an ".join(["nnx.Rngs", *(f"nnx.{kind.__name__}" for kind in kinds)])
    raise TypeError(f"{who}: {name} must be an {wanted}, from which the layer draws its keys; got {got}. Try {hint}.")


def check_layer(who: str, rngs: Any, **sizes: Any) -> list[int]:
    """The sizes of a layer as ints of at least 1, checked together with its ``rngs``."""
    checked = [check_count(who, name, size) for name, size in sizes.items()]
    check_rngs(who, "rngs", rngs)
    return checked


def check_coefficient(who: str, name: str, value: Any, **bounds: Any) -> Any:
    """A number as by :func:`check_number`; variables and traced numbers, which may change, pass."""
    if isinstance(value, nnx.Variable | Tracer):
        return value
    return check_number(who, name, value, **bounds)


def check_names(who: str, names: Iterable[Any], what: str = "the name of a child") -> None:
    """``TypeError`` for a name that is no string."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{who}: {what} must be a string; got {name!r}.")
