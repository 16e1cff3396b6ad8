"""Trees packed into one table for each width of numbers: one write, and one read per sample, whatever the tree."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from triax.core.key_types import is_typed_key, key_implementation
from triax.core.sharding import device_number, per_device, summed

WORDS = "words"
"""The table of all numbers of four bytes, and of truth values, as ``uint32``; others have one for each dtype."""


@dataclass(frozen=True)
class _Leaf:
    """Where a leaf of one row is."""

    table: str
    start: int
    shape: tuple[int, ...]
    """As it is stored: of keys that of their data."""
    dtype: Any
    prng: str | None
    """The implementation of typed keys."""

    @property
    def stop(self) -> int:
        return self.start + math.prod(self.shape)


@dataclass(frozen=True)
class _Layout:
    structure: Any
    leaves: tuple[_Leaf, ...]

    @classmethod
    def of(cls, example: PyTree) -> "_Layout":
        flat, structure = jax.tree.flatten(example)
        ends: dict[str, int] = {}
        leaves = []
        for value in flat:
            raw = _without_keys(value)
            table = _table_of(raw.dtype)
            leaf = _Leaf(table, ends.get(table, 0), tuple(raw.shape[1:]), value.dtype, _prng_of(value))
            ends[table] = leaf.stop
            leaves.append(leaf)
        return cls(structure, tuple(leaves))

    def pack(self, tree: PyTree) -> dict[str, Array]:
        """Leaves ``[n, ...]`` as columns of tables ``[n, columns]``."""
        parts: dict[str, list[Array]] = {}
        for leaf, value in zip(self.leaves, self.structure.flatten_up_to(tree), strict=True):
            value = jnp.asarray(value)
            value = jax.random.key_data(value) if is_typed_key(value) else value.astype(leaf.dtype)
            parts.setdefault(leaf.table, []).append(_raw(value, leaf.table).reshape(value.shape[0], -1))
        return {table: jnp.concatenate(columns, axis=1) for table, columns in parts.items()}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PackedRows:
    """A buffer of rows of one tree. A pytree: donate it, and a write is in place.

    Row ``step * num_envs + env`` is of that step and environment. Environments are an axis of their own, so that
    several devices can each keep the rows of theirs.

    XLA fuses the write of a column of scalars into reads that follow, which then need the old column too: it copies the
    whole column at each step. It does not do so with the rows of a table, and has fewer operations to run.
    """

    tables: dict[str, Any]
    """``[num_steps, num_envs, columns]``."""
    layout: _Layout = field(metadata={"static": True})

    @classmethod
    def empty(cls, example: PyTree, num_steps: int) -> "PackedRows":
        """Zeros for so many trees like ``example``, leaves ``[num_envs, ...]`` or ``jax.ShapeDtypeStruct``."""
        layout = _Layout.of(example)
        widths: dict[str, int] = {}
        for leaf in layout.leaves:
            widths[leaf.table] = leaf.stop
        size = num_steps, jax.tree.leaves(example)[0].shape[0]
        tables = {name: jnp.zeros((*size, width), _raw_dtype(name)) for name, width in widths.items()}
        return cls(tables, layout)

    def write(self, step: Int[Array, ""], tree: PyTree) -> "PackedRows":
        """With the rows of a step, leaves ``[num_envs, ...]``."""
        packed = self.layout.pack(tree)
        tables = {
            name: jax.lax.dynamic_update_index_in_dim(table, packed[name], step, axis=0)
            for name, table in self.tables.items()
        }
        return PackedRows(tables, self.layout)

    def take(self, index: Int[Array, "*shape"], select: Callable[[Any], PyTree] = lambda row: row) -> PyTree:
        """The rows at ``index``, leaves ``[*shape, ...]``; ``select`` picks the parts of the tree to read."""
        wanted = select(jax.tree.unflatten(self.layout.structure, self.layout.leaves))
        leaves: list[_Leaf] = jax.tree.leaves(wanted)
        spans = {name: _span(name, leaves) for name in {leaf.table for leaf in leaves}}
        read = {name: _gather(self.tables[name], index, *span) for name, span in spans.items()}

        def unpack(leaf: _Leaf) -> Array:
            first = leaf.start - spans[leaf.table][0]
            part = read[leaf.table][..., first : first + leaf.stop - leaf.start]
            rows = part.reshape(*index.shape, *leaf.shape)
            return jax.random.wrap_key_data(rows, impl=leaf.prng) if leaf.prng else _cooked(rows, leaf.dtype)

        return jax.tree.map(unpack, wanted)

    def tree(self) -> PyTree:
        """All rows."""
        num_steps, num_envs, _ = next(iter(self.tables.values())).shape
        return self.take(jnp.arange(num_steps * num_envs, dtype=jnp.int32))


def _span(table: str, leaves: list[_Leaf]) -> tuple[int, int]:
    """The columns from the first to the last wanted one: a row lies together in memory."""
    own = [leaf for leaf in leaves if leaf.table == table]
    return min(leaf.start for leaf in own), max(leaf.stop for leaf in own)


def _gather(table: Array, index: Int[Array, "*shape"], start: int, stop: int) -> Array:
    """Columns of rows. Over several devices, each reads what it has, and they share it: the rest is zero there."""
    num_envs = table.shape[1]

    def own(table: Array, index: Array) -> Array:
        here = table.shape[1]
        rows = table.reshape(-1, table.shape[-1])
        if here == num_envs:
            return _read(rows, index, start, stop)
        env = index % num_envs - device_number() * here
        is_here = (env >= 0) & (env < here)
        found = _read(rows, index // num_envs * here + jnp.where(is_here, env, 0), start, stop)
        return summed(jnp.where(is_here[..., None], found, jnp.zeros((), table.dtype)))

    return per_device(own, (1, None), None)(table, index)


def _read(rows: Array, index: Int[Array, "*shape"], start: int, stop: int) -> Array:
    read = jax.vmap(lambda i: jax.lax.dynamic_slice(rows, (i, jnp.int32(start)), (1, stop - start))[0])
    return read(index.reshape(-1)).reshape(*index.shape, stop - start)


def _prng_of(leaf: Any) -> str | None:
    return key_implementation(leaf) if is_typed_key(leaf) else None


def _without_keys(leaf: Any) -> Any:
    """Shape and dtype of what is stored of a leaf: of typed keys their data."""
    return jax.eval_shape(jax.random.key_data, leaf) if is_typed_key(leaf) else leaf


def _table_of(dtype: Any) -> str:
    return WORDS if dtype == jnp.bool_ or np.dtype(dtype).itemsize == 4 else str(dtype)


def _raw_dtype(table: str) -> Any:
    return jnp.uint32 if table == WORDS else jnp.dtype(table)


def _raw(value: Array, table: str) -> Array:
    if table != WORDS:
        return value
    return value.astype(jnp.uint32) if value.dtype == jnp.bool_ else jax.lax.bitcast_convert_type(value, jnp.uint32)


def _cooked(part: Array, dtype: Any) -> Array:
    if part.dtype == dtype:
        return part
    return part != 0 if dtype == jnp.bool_ else jax.lax.bitcast_convert_type(part, dtype)
