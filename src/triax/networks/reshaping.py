"""Layers that only select, join, cut or scale."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from triax.core.numbers import check_count, check_number
from triax.networks.inputs import check_features
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, StatefulModuleOutput

FilterSpec = str | tuple | Callable[..., Any]
"""A key, a path of keys and indices, or a function of the whole input."""


class Splitter(StatefulModule):
    """``[..., D]`` to a dict of slices of the last axis: ``Splitter(mean=3, std=3)``, in this order.

    Raises ``ValueError`` for no sizes or one below 1, :class:`SizeError` for an input not as wide as their
    sum.
    """

    def __init__(self, **sizes: int):
        if not sizes:
            raise ValueError("Splitter: sizes must be one or more positive integers; got none. Try Splitter(a=2, b=1).")
        self.sizes = tuple((name, check_count("Splitter", name, size)) for name, size in sizes.items())

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        total = sum(size for _, size in self.sizes)
        check_features(self, x, total)
        parts, start = {}, 0
        for name, size in self.sizes:
            parts[name] = jnp.asarray(x)[..., start : start + size]
            start += size
        return plain(parts)


class Flattener(StatefulModule):
    """Every leaf to ``[batch, -1]``, side by side in the order of the pytree (keys of dicts sorted).

    With ``preserve_levels=n`` the upper ``n`` levels of dicts, lists and tuples stay and what is below each
    is flattened. A leaf ``[batch]`` is one feature. Raises ``ValueError`` for a negative number of levels,
    ``TypeError`` for a leaf above that depth.
    """

    def __init__(self, preserve_levels: int = 0):
        self.preserve_levels = check_count("Flattener", "preserve_levels", preserve_levels, low=0)

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        return plain(self._flatten(x, self.preserve_levels))

    def _flatten(self, x: Any, levels: int) -> Any:
        if not levels:
            return jnp.concatenate(_rows(x), axis=-1)
        if isinstance(x, Mapping):
            return {key: self._flatten(value, levels - 1) for key, value in x.items()}
        if isinstance(x, list | tuple):
            parts = [self._flatten(value, levels - 1) for value in x]
            return parts if isinstance(x, list) else tuple(parts)
        raise TypeError(
            f"Flattener: preserve_levels={self.preserve_levels} needs that many levels of dicts, lists or "
            "tuples; "
            f"there is a leaf of shape {list(jnp.shape(x))} above."
        )


def _rows(x: Any) -> list[Array]:
    """The leaves as ``[batch, features]``; refused where there are none, or their batches differ."""
    leaves = jax.tree.leaves(x)
    if not leaves:
        raise ValueError(f"Flattener: takes a tree of arrays [batch, ...]; got {x!r}, without an array in it.")
    shapes = [jnp.shape(leaf) for leaf in leaves]
    batches = {shape[:1] for shape in shapes}
    if () in batches or len(batches) > 1:
        raise ValueError(
            f"Flattener: all arrays must be [batch, ...], with one batch; got the shapes {list(map(list, shapes))}."
        )
    return [jnp.reshape(leaf, (shape[0], math.prod(shape[1:]))) for leaf, shape in zip(leaves, shapes, strict=True)]


class Filter(StatefulModule):
    """A dict of selected parts: each entry of ``spec`` is a key, a path (tuple of keys and indices) or a
    function.

    ``Filter({"arm": ("left", 0), "speed": lambda x: x["vel"] ** 2})``. Raises ``TypeError`` for other
    entries.
    """

    def __init__(self, spec: Any):
        if not isinstance(spec, Mapping):
            raise TypeError(f"Filter: spec must be a dict; got {type(spec).__name__}.")
        for name, entry in spec.items():
            if not isinstance(entry, str | tuple) and not callable(entry):
                raise TypeError(
                    f"Filter: entry {name!r} must be a key, a tuple of keys and indices, or a function; got {entry!r}."
                )
        self.spec = tuple(spec.items())

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        parts = {name: select_part("Filter", f"entry {name!r}", entry, x) for name, entry in self.spec}
        return plain(parts)


def select_part(who: str, what: str, entry: FilterSpec, x: Any) -> Any:
    """The part of ``x`` at a key or a path, or what a function makes of it; a ``KeyError`` names what is
    there.
    """
    if not isinstance(entry, str | tuple):
        return entry(x)
    part = x
    for key in entry if isinstance(entry, tuple) else (entry,):
        try:
            part = part[key]
        except (KeyError, IndexError, TypeError) as error:
            got = list(part) if isinstance(part, Mapping) else type(part).__name__
            raise KeyError(f"{who}: no {key!r} for {what} ({entry!r}); there is {got}.") from error
    return part


class Scale(StatefulModule):
    """Every leaf times ``factor``."""

    def __init__(self, factor: float | int):
        self.factor = check_number("Scale", "factor", factor)

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        return plain(jax.tree.map(lambda leaf: leaf * self.factor, x))
