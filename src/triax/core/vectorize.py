"""From functions of batches to functions of single items."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Axes = int | Sequence[int | None]


def unvectorize(f: Callable, in_axes: Axes = 0, out_axes: Axes = 0) -> Callable:
    """The inverse of ``jax.vmap``: call a function of batches with single items.

    Batch axes of size one are added to the arguments and squeezed from the outputs; arguments and outputs
    are pytrees. Axes are one int for all, or a sequence of one per argument or per element of a tuple output,
    where ``None`` leaves it alone. The returned function raises ``ValueError`` when their number is wrong and
    ``TypeError`` when ``out_axes`` is no int for an output that is no tuple.
    """

    @functools.wraps(f)
    def single(*args: Any) -> Any:
        axes = [in_axes] * len(args) if isinstance(in_axes, int) else list(in_axes)
        _check_number("in_axes", axes, "arguments", len(args))
        out = f(*(_expand(arg, axis) for arg, axis in zip(args, axes, strict=True)))
        if isinstance(out_axes, int):
            return _squeeze(out, out_axes)
        if not isinstance(out, tuple):
            raise TypeError(f"unvectorize: out_axes must be an int for the single output of {f}; got {out_axes!r}")
        axes = list(out_axes)
        _check_number("out_axes", axes, "outputs", len(out))
        return tuple(_squeeze(part, axis) for part, axis in zip(out, axes, strict=True))

    return single


def _check_number(name: str, axes: list, what: str, number: int) -> None:
    if len(axes) != number:
        raise ValueError(f"unvectorize: {name} must have one entry for each of the {number} {what}; got {axes}")


def _expand(tree: Any, axis: int | None) -> Any:
    return tree if axis is None else jax.tree.map(lambda x: _namespace(x).expand_dims(x, axis), tree)


def _squeeze(tree: Any, axis: int | None) -> Any:
    return tree if axis is None else jax.tree.map(lambda x: _namespace(x).squeeze(x, axis), tree)


def _namespace(leaf: Any) -> Any:
    return jnp if isinstance(leaf, jax.Array) else np
