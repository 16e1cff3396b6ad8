"""What a rule prints of its optimizer and its functions."""

from collections.abc import Iterator
from typing import Any

from triax.functions import Approximator
from triax.functions.description import count_parameters


def describe_trained(f: Approximator) -> str:
    """For example ``Q with 1,234 parameters``."""
    return f"{type(f).__name__} with {count_parameters(f._params)}"


def describe_optimizer(state: Any) -> str:
    """The transformations that have a state, for example ``ScaleByAdam``; optax keeps no other names."""
    names = [name.removesuffix("State") for name in _state_names(state)]
    return " > ".join(dict.fromkeys(name for name in names if name != "Empty")) or "stateless"


def describe_callable(function: Any) -> str:
    """Its name."""
    return getattr(function, "__name__", type(function).__name__)


def _state_names(state: Any) -> Iterator[str]:
    if not isinstance(state, tuple):
        return
    if hasattr(state, "_fields"):
        yield type(state).__name__
    for part in state:
        yield from _state_names(part)
