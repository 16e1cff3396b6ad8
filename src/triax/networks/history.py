"""The last inputs of each environment, kept oldest first: what delays and frame stacks share."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from triax.networks.types import SizeError
from triax.networks.unrolling import select


class Specs:
    """Shapes and dtypes of the leaves of one unbatched example; hashable, hence static in a module."""

    def __init__(self, who: str, sample: PyTree):
        leaves, self.treedef = jax.tree.flatten(sample)
        self.who = who
        if not self.treedef.num_leaves:
            raise ValueError(f"{who}: sample_input must have at least one array; got {sample!r}. Leave the layer out.")
        self.leaves = tuple((tuple(jnp.shape(leaf)), np.dtype(jnp.result_type(leaf))) for leaf in leaves)

    def _key(self) -> tuple:
        return self.who, self.treedef, self.leaves

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specs) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def full(self, lead: tuple[int, ...], values: tuple) -> PyTree:
        """Arrays of these shapes behind the axes ``lead``, one value a leaf."""
        arrays = [
            jnp.full(lead + shape, value, dtype) for (shape, dtype), value in zip(self.leaves, values, strict=True)
        ]
        return jax.tree.unflatten(self.treedef, arrays)

    def shapes(self, length: int) -> list[tuple[int, ...]]:
        """Of each leaf in a buffer of so many entries, without batch axis."""
        return [(length, *shape) for shape, _ in self.leaves]

    def spread(self, value: Any) -> tuple:
        """One number a leaf, from a number for all or a tree of them; refused where it does not fit."""
        fits = jax.tree.structure(value) == self.treedef
        numbers = jax.tree.leaves(value) if fits else [value] * len(self.leaves)
        return tuple(self._number(n, dtype) for n, (_, dtype) in zip(numbers, self.leaves, strict=True))

    def _number(self, number: Any, dtype: np.dtype) -> Any:
        if not np.isscalar(number) or isinstance(number, str):
            raise TypeError(
                f"{self.who}: an initial value must be a number, or a tree of numbers like the sample; got {number!r}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            held = np.asarray(number).astype(dtype).item()
        is_lost = np.isfinite(number) and (not np.isfinite(held) or (held == 0 and number != 0))
        if is_lost or (not jnp.issubdtype(dtype, jnp.inexact) and held != number):
            raise TypeError(f"{self.who}: the initial value {number!r} does not fit into {dtype}.")
        return held

    def cast(self, x: PyTree, axes: int) -> PyTree:
        """``x`` in the sample's dtypes; refused where its tree, shapes behind ``axes`` or kind differ."""
        leaves, treedef = jax.tree.flatten(x)
        if treedef != self.treedef:
            raise ValueError(f"{self.who}: the input must be a tree like the sample, {self.treedef}; got {treedef}.")
        return jax.tree.unflatten(
            treedef, [self._cast(leaf, axes, *spec) for leaf, spec in zip(leaves, self.leaves, strict=True)]
        )

    def _cast(self, leaf: Any, axes: int, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        leaf = jnp.asarray(leaf)
        if shape and leaf.ndim and leaf.shape[-1] != shape[-1]:
            raise SizeError(self.who, shape[-1], leaf.shape[-1])
        if leaf.shape[axes:] != shape:
            lead = ["time", "batch"][2 - axes :]
            raise ValueError(
                f"{self.who}: this layer was made for examples of shape {list(shape)}, so that it takes "
                f"[{', '.join([*lead, *map(str, shape)])}]; got {list(leaf.shape)}. sample_input must be one unbatched "
                f"example (an array or a jax.ShapeDtypeStruct, not a size), such as jnp.zeros({leaf.shape[axes:]})."
            )
        if not _holds(dtype, leaf.dtype):
            raise TypeError(f"{self.who}: the sample is {dtype}, which cannot hold {leaf.dtype}. Change its dtype.")
        return leaf.astype(dtype)


def _holds(dtype: np.dtype, given: Any) -> bool:
    """May ``given`` be stored as ``dtype``? Floats lose digits at most; integers must keep their value."""
    if jnp.issubdtype(dtype, jnp.integer):
        return np.can_cast(given, dtype, "safe")
    return jnp.promote_types(given, dtype) == dtype or (
        jnp.issubdtype(dtype, jnp.floating) and jnp.issubdtype(given, jnp.floating)
    )


def push(buffer: PyTree, x: PyTree) -> PyTree:
    """The buffer ``[batch, n, ...]`` without its oldest entry and with ``x`` as its newest."""
    return jax.tree.map(lambda b, new: jnp.concatenate([b, new[:, None]], axis=1)[:, 1:], buffer, x)


def last_start(resets: Bool[Array, "time batch"]) -> Int[Array, "time batch"]:
    """The step at which the episode of each step began, and ``-time`` where that was before the sequence."""
    time = resets.shape[0]
    steps = jnp.where(resets, jnp.arange(time, dtype=jnp.int32)[:, None], -(2**30))
    return jax.lax.cummax(steps, axis=0)


class Past:
    """A sequence with the buffer of inputs before it; what is not of the same episode is filled."""

    def __init__(self, buffer: PyTree, xs: PyTree, resets: Bool[Array, "time batch"], fill: PyTree):
        self.time = resets.shape[0]
        self.starts = last_start(resets)
        self.fill = fill
        self.size = jax.tree.leaves(buffer)[0].shape[1]
        self.all = jax.tree.map(lambda b, x: jnp.concatenate([jnp.moveaxis(b, 1, 0), x]), buffer, xs)

    def lagged(self, lag: int) -> PyTree:
        """The inputs of ``lag`` steps ago, ``[time, batch, ...]``; ``lag`` at most the size of the buffer."""
        first = self.size - lag
        old = jax.tree.map(lambda a: a[first : first + self.time], self.all)
        missing = jnp.arange(self.time)[:, None] - lag < self.starts
        return select(missing, self.fill, old)

    def buffer(self) -> PyTree:
        """The buffer after the last step, ``[batch, n, ...]``."""
        newest = jax.tree.map(lambda a: a[self.time :], self.all)
        steps = jnp.arange(self.time - self.size, self.time)[:, None]
        fill = jax.tree.map(lambda f: f[-1], self.fill)
        kept = select(steps < self.starts[-1], jax.tree.map(lambda f: f[None], fill), newest)
        return jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1), kept)
