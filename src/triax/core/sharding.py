"""Programs over several devices: environments and batches are split, all else is the same on each device.

Arrays stay what they are, of all environments together; only where their rows lie is said. The compiler makes one
program per device of it and lets devices exchange what sums and means need (``jax.sharding``, automatic axes).
"""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, PyTree

from triax.core.numbers import check_count

AXIS = "environments"
"""The axis of a mesh over which environments and batches are split."""

Devices = int | Sequence[Any] | None
"""How many local devices, or which ones (``jax.devices()``: those of all processes); ``None`` for JAX's default one."""


def mesh_of(who: str, devices: Devices) -> Mesh | None:
    """The devices as a mesh of one axis; ``None`` for one device that was not named, where nothing is to be said.

    Raises:
        TypeError: neither a number nor a sequence.
        ValueError: there are not so many, or one comes twice.
    """
    if devices is None:
        return None
    if isinstance(devices, Sequence) and not isinstance(devices, str):
        if len(devices) == 0 or len(set(devices)) < len(devices):
            raise ValueError(f"{who}: devices must be different ones, at least one; got {list(devices)}.")
        return Mesh(np.array(devices), (AXIS,))
    count, there = check_count(who, "devices", devices), jax.local_devices()
    if count > len(there):
        raise ValueError(
            f"{who}: devices must be at most {len(there)}, which is how many there are here ({there[0].platform}); got"
            f" {count}. Try devices={len(there)}; on a CPU, start Python with"
            f" XLA_FLAGS=--xla_force_host_platform_device_count={count}."
        )
    return None if count == 1 else Mesh(np.array(there[:count]), (AXIS,))


def check_divides(who: str, name: str, rows: int, mesh: Mesh | None) -> None:
    """``ValueError`` unless so many rows can be split evenly."""
    count = 1 if mesh is None else mesh.size
    if rows % count:
        raise ValueError(
            f"{who}: {name} must be a multiple of the number of devices, {count}; got {rows}. Try {name}="
            f"{rows - rows % count or count} or {-(-rows // count) * count}, or another number of devices."
        )


def check_placed(who: str, state: PyTree, mesh: Mesh | None) -> None:
    """``ValueError`` if a state is on other devices than the loop ``who`` runs on."""
    count, leaf = 1 if mesh is None else mesh.size, jax.tree.leaves(state)[0]
    on_host_or_traced = isinstance(leaf, Tracer | np.ndarray)
    found = count if on_host_or_traced else leaf.sharding.num_devices
    if found != count:
        raise ValueError(
            f"{who}: the state must be on {count} device{'s' * (count > 1)}; got one on {found}. Try"
            f" {who}(...).place(state) first."
        )


def tracing_for(mesh: Mesh | None) -> AbstractContextManager:
    """The context in which programs for these devices are called."""
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


def num_shards() -> int:
    """Over how many devices the program that is traced splits rows; 1 inside of :func:`per_device`."""
    return 1 if _is_one_of_several() else jax.sharding.get_abstract_mesh().shape.get(AXIS, 1)


def summed(tree: PyTree) -> PyTree:
    """The sum over devices, inside of :func:`per_device` where it splits rows; the same elsewhere."""
    return jax.lax.psum(tree, AXIS) if _is_one_of_several() else tree


def gathered(tree: PyTree) -> PyTree:
    """What each device has, leaves ``[devices, ...]``, inside of :func:`per_device`; elsewhere ``[1, ...]``."""
    if _is_one_of_several():
        return jax.lax.all_gather(tree, AXIS)
    return jax.tree.map(lambda leaf: leaf[None], tree)


def device_number() -> Array:
    """Which of the devices it is, inside of :func:`per_device` where it splits rows."""
    return jax.lax.axis_index(AXIS)


def _is_one_of_several() -> bool:
    return AXIS in jax.sharding.get_abstract_mesh().manual_axes


def laid_out(tree: PyTree, axes: PyTree) -> PyTree:
    """The same, with each leaf split over devices along its axis, or whole on each for ``None``; for traced programs.

    ``axes`` is a tree like it, or one that ends earlier.
    """
    if num_shards() == 1:
        return tree
    return _map_prefix(lambda axis, leaf: jax.lax.with_sharding_constraint(leaf, _spec(axis)), axes, tree)


def same_everywhere(tree: PyTree) -> PyTree:
    """The same, whole on each device; for traced programs. Of gradients, it is here that devices share their parts."""
    return laid_out(tree, None)


def with_rows_split(tree: PyTree, rows: int, axis: int = 0) -> PyTree:
    """The same, with those leaves that have so many rows along the axis split over devices; for traced programs."""

    def place(leaf: Any) -> Any:
        has_rows = np.ndim(leaf) > axis and leaf.shape[axis] == rows
        return jax.lax.with_sharding_constraint(leaf, _spec(axis)) if has_rows else leaf

    return tree if num_shards() == 1 else jax.tree.map(place, tree)


def per_device(function: Callable[..., Any], in_axes: tuple, out_axes: Any) -> Callable[..., Any]:
    """``function`` of the rows of each device by themselves, where a program is split; else of all rows.

    Axes are as those of ``jax.vmap``: where rows are, ``None`` for arguments that are the same everywhere. Rows that
    cannot be split evenly stay together, so ``function`` must not depend on what else is there.
    """

    def call(*args: Any) -> Any:
        shards = num_shards()
        sizes = {
            leaf.shape[axis]
            for axis, arg in zip(in_axes, args, strict=True)
            if axis is not None
            for leaf in jax.tree.leaves(arg)
        }
        if shards == 1 or any(size % shards for size in sizes):
            return function(*args)
        specs = jax.tree.map(_spec, (in_axes, out_axes), is_leaf=lambda axis: axis is None)
        return jax.shard_map(function, in_specs=specs[0], out_specs=specs[1], check_vma=False)(*args)

    return call


def place(tree: PyTree, axes: PyTree, mesh: Mesh | None, *, leading: int = 0) -> PyTree:
    """Arrays on these devices, wherever they were: as :func:`laid_out`, with so many axes before those.

    Without a mesh, what lies on several devices comes to one; the rest stays as it is.
    """
    if mesh is None:
        return jax.tree.map(_on_one_device, tree)

    def put(axis: int | None, leaf: Any) -> jax.Array:
        spec = _spec(None if axis is None else axis + leading)
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    return _map_prefix(put, axes, tree)


def first_replica(tree: PyTree) -> PyTree:
    """What is the same on all devices, as arrays of one of them; nothing is copied."""

    def one(leaf: Any) -> Any:
        # ``sharding.device_set``, since ``devices()`` refuses an array that was donated
        return leaf.addressable_data(0) if isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1 else leaf

    return jax.tree.map(one, tree)


def _spec(axis: int | None) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, AXIS)


def _map_prefix(function: Callable[[int | None, Any], Any], axes: PyTree, tree: PyTree) -> PyTree:
    def one(axis: int | None, part: PyTree) -> PyTree:
        return jax.tree.map(lambda leaf: function(axis, leaf), part)

    return jax.tree.map(one, axes, tree, is_leaf=lambda axis: axis is None)


def _on_one_device(leaf: Any) -> Any:
    if isinstance(leaf, Tracer):  # of ``eval_shape``: it is nowhere yet
        return leaf
    is_spread = isinstance(leaf, jax.Array) and len(leaf.devices()) > 1
    return jax.device_put(leaf, jax.local_devices()[0]) if is_spread else leaf
