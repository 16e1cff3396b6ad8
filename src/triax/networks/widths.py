"""How many features plain modules and functions take, which do not say so themselves."""

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx

from triax.networks.inputs import check_features

_BY_FEATURES = nnx.Linear | nnx.Conv | nnx.ConvTranspose
_NORMS = nnx.LayerNorm | nnx.RMSNorm | nnx.BatchNorm | nnx.InstanceNorm


def check_width(layer: Any, x: Any) -> None:
    """Refuse an input of another width than flax's layer was made for; norms would broadcast a width of 1."""
    if isinstance(layer, _BY_FEATURES):
        check_features(layer, x, layer.in_features)
    elif isinstance(layer, _NORMS) and getattr(layer, "axis", getattr(layer, "feature_axes", -1)) in (-1, (-1,)):
        check_features(layer, x, layer.num_features)


def accepted_width(layer: Any, x: Any, mode: Mapping[str, Any]) -> int | None:
    """The width that a layer, which failed on ``x``, takes in its place; ``None`` where none or several are right.

    Tried abstractly, with those sizes that occur in the arrays of the layer: of a module, or of what a function refers
    to.
    """
    if not jax.tree_util.all_leaves([x]) or not np.shape(x):
        return None
    sizes = {size for leaf in _arrays(layer) for size in np.shape(leaf)} - {np.shape(x)[-1]}
    taken = [size for size in sorted(sizes) if _takes(layer, x, size, mode)]
    return taken[0] if len(taken) == 1 else None


def _takes(layer: Any, x: Any, size: int, mode: Mapping[str, Any]) -> bool:
    parts = nnx.split(layer) if isinstance(layer, nnx.Module) else None

    def call(x: Any) -> Any:
        function = nnx.merge(*parts, copy=True) if parts else layer
        return function(x, **mode)

    try:
        jax.eval_shape(call, jax.ShapeDtypeStruct((*np.shape(x)[:-1], size), x.dtype))
    except (TypeError, ValueError):  # what jax, flax and haiku raise for sizes
        return False
    return True


def _arrays(value: Any) -> Iterator[Any]:
    """Arrays in a module, in what a function refers to, in the arguments that a partial fixes."""
    if isinstance(value, nnx.Module):
        yield from jax.tree.leaves(nnx.state(value))
    elif isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from _arrays(part)
    elif inspect.isfunction(value):
        seen = inspect.getclosurevars(value)
        for part in (*seen.nonlocals.values(), *seen.globals.values()):
            yield from _arrays(part) if not inspect.isfunction(part) else ()
    else:
        yield from (leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array | np.ndarray))
