"""From a batch of elements of a space to arrays of fixed dtype and shape."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from triax.spaces.bounds import canonical_dtype
from triax.spaces.checks import check_space, describe, misfit
from triax.spaces.encode import Encoder, dict_encoder, discrete_range, to_exact, to_float, tuple_encoder


def batch_encoder(space: spaces.Space, *, who: str, argument: str) -> Encoder:
    """As :func:`triax.spaces.encoder` for a batch: every leaf has the batch on axis 0.

    The function also raises a ``ValueError`` when leaves differ in the length of the batch. Leaves that are
    JAX arrays (traced ones too) stay on the device: their shapes and the kinds of their dtypes are checked (no
    floats for integers), their values are not looked at.
    """
    check_space(space, who=who, argument=argument)
    place = f"{who}: {argument}"
    encode = _batch_encoder(space, place)
    if not isinstance(space, spaces.Tuple | spaces.Dict):
        return encode

    def encode_tree(x: Any) -> Any:
        batch = encode(x)
        lengths = {len(leaf) for leaf in jax.tree.leaves(batch)}
        if len(lengths) > 1:
            shapes = {
                jax.tree_util.keystr(path): leaf.shape for path, leaf in jax.tree_util.tree_flatten_with_path(batch)[0]
            }
            raise misfit(place, space, f"got leaves with different batch sizes: {shapes}")
        return batch

    return encode_tree


@functools.singledispatch
def _batch_encoder(space: spaces.Space, place: str) -> Encoder:
    raise NotImplementedError(f"{place}: no encoding of {describe(space)}")


@_batch_encoder.register
def _(space: spaces.Discrete, place: str) -> Encoder:
    first = int(space.start)
    return _leaf_encoder(space, place, (), np.dtype(np.int32), (first, first + int(space.n) - 1))


@_batch_encoder.register
def _(space: spaces.Box, place: str) -> Encoder:
    return _leaf_encoder(space, place, space.shape, canonical_dtype(space), None)


@_batch_encoder.register
def _(space: spaces.MultiDiscrete, place: str) -> Encoder:
    return _leaf_encoder(space, place, space.shape, np.dtype(np.int32), discrete_range(space))


@_batch_encoder.register
def _(space: spaces.MultiBinary, place: str) -> Encoder:
    return _leaf_encoder(space, place, space.shape, np.dtype(np.int8), (0, 1))


@_batch_encoder.register(spaces.Tuple)
def _(space: Any, place: str) -> Encoder:
    return tuple_encoder(space, place, _batch_encoder)


@_batch_encoder.register(spaces.Dict)
def _(space: Any, place: str) -> Encoder:
    return dict_encoder(space, place, _batch_encoder)


def _cast(batch: Any, dtype: np.dtype, place: str, space: spaces.Space) -> jax.Array:
    """An array on the device in ``dtype``; refused where the kind of its own tells that values would change."""
    kinds = (bool, jnp.integer, jnp.floating) if dtype.kind == "f" else (bool, jnp.integer)
    if any(jnp.issubdtype(batch.dtype, kind) for kind in kinds):
        return batch.astype(dtype)
    raise misfit(place, space, f"got an array of {batch.dtype} on the device, expected {dtype}")


def _leaf_encoder(
    space: spaces.Space, place: str, shape: tuple[int, ...], dtype: np.dtype, limits: tuple[Any, Any] | None
) -> Encoder:
    convert = to_float if dtype.kind == "f" else to_exact
    ndim = len(shape) + 1

    def encode(x: Any) -> Any:
        # The usual type first: to ask for a jax.Array runs Python code.
        on_device = type(x) is not np.ndarray and isinstance(x, jax.Array)
        batch = x if on_device else convert(x, dtype, place, space)
        found = batch.shape
        if len(found) != ndim or found[1:] != shape:
            expected = ", ".join(["batch", *map(str, shape)])
            raise misfit(place, space, f"got shape {found}, expected ({expected})")
        if on_device:
            return batch if batch.dtype == dtype else _cast(batch, dtype, place, space)
        if limits is not None:
            outside = (batch < limits[0]) | (batch > limits[1])
            if np.count_nonzero(outside):
                row = np.argwhere(outside)[0, 0]
                raise misfit(place, space, f"got {batch[row]!r} in row {row} of the batch")
        return batch

    return encode
