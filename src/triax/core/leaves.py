"""The leaves of a pytree by name: what they are, their values as NumPy arrays, and back again."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from triax.core.key_types import is_typed_key, key_implementation
from triax.core.tree_differences import describe_difference


def named_leaves(tree: PyTree) -> dict[str, Any]:
    """Leaves by their path, as in ``params/dense/kernel``; ``ValueError`` where two have one name."""
    leaves: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if name in leaves:
            raise ValueError(f"tree: two leaves have the name {name!r}. Try keys without a slash.")
        leaves[name] = leaf
    return leaves


def describe_leaf(name: str, leaf: Any) -> jax.ShapeDtypeStruct:
    """Shape and dtype of a leaf, where a Python number has that of NumPy; ``TypeError`` for other objects."""
    if not hasattr(leaf, "dtype"):
        leaf = np.asarray(leaf)
    if is_typed_key(leaf) or jnp.issubdtype(leaf.dtype, np.number) or leaf.dtype == bool:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    raise TypeError(
        f"tree: the leaf {name!r} must be an array, a PRNG key or a number, got {leaf.dtype} {leaf!r}. "
        "Try the metadata for what is none of these."
    )


def to_numpy(leaves: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The leaves' values, of PRNG keys their data; one transfer from the device."""
    raw = {name: jax.random.key_data(leaf) if is_typed_key(leaf) else leaf for name, leaf in leaves.items()}
    values = jax.device_get(list(raw.values()))  # a list: dicts come back sorted
    return {name: np.asarray(value) for name, value in zip(raw, values, strict=True)}


def to_json(name: str, leaf: Any) -> dict[str, Any]:
    """Shape and dtype, or the implementation of a PRNG key."""
    struct = describe_leaf(name, leaf)
    kind = {"prng": str(jax.random.key_impl(leaf))} if is_typed_key(leaf) else {"dtype": str(struct.dtype)}
    return {"shape": list(struct.shape)} | kind


def from_json(record: Mapping[str, Any]) -> jax.ShapeDtypeStruct:
    """Undoes ``to_json``, up to the values."""
    shape = tuple(record["shape"])
    if "prng" in record:
        key = jax.eval_shape(lambda: jax.random.key(0, impl=record["prng"]))
        return jax.ShapeDtypeStruct(shape, key.dtype)
    return jax.ShapeDtypeStruct(shape, jnp.dtype(record["dtype"]))


def stored_struct(struct: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """What ``to_numpy`` gives for such a leaf."""
    return jax.eval_shape(jax.random.key_data, struct) if is_typed_key(struct) else struct


@functools.singledispatch
def restore_leaf(like: Any, value: np.ndarray) -> Any:
    """The value as the kind of leaf that ``like`` is."""
    raise TypeError(f"cannot restore a leaf of type {type(like).__name__}.")


@restore_leaf.register(jax.Array)
@restore_leaf.register(jax.ShapeDtypeStruct)
def _restore_jax_array(like: Any, value: np.ndarray) -> jax.Array:
    # Copies: an array that shared the buffer of `value` could not be donated.
    placed = like.sharding if getattr(like, "committed", like.sharding is not None) else None
    raw = jnp.array(value) if placed is None else jax.device_put(value, placed, may_alias=False)
    return jax.random.wrap_key_data(raw, impl=key_implementation(like)) if is_typed_key(like) else raw


@restore_leaf.register(np.ndarray)
def _restore_numpy_array(like: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.array(value)


@restore_leaf.register(np.generic)
def _restore_numpy_scalar(like: np.generic, value: np.ndarray) -> Any:
    return value[()]


@restore_leaf.register(bool)
@restore_leaf.register(int)
@restore_leaf.register(float)
@restore_leaf.register(complex)
def _restore_python_number(like: Any, value: np.ndarray) -> Any:
    return type(like)(value.item())


def restore_tree(like: PyTree, leaves: Mapping[str, Any], name: str = "tree") -> PyTree:
    """The tree of the structure of ``like`` with copies of these leaves, or of their values as NumPy arrays, by path.

    Raises ``ValueError`` that starts with ``name`` and lists the leaves that differ.
    """
    values, wanted = to_numpy(leaves), named_leaves(like)
    expected = {path: stored_struct(describe_leaf(path, leaf)) for path, leaf in wanted.items()}
    difference = describe_difference(expected, values, name)
    if difference is not None:
        raise ValueError(difference)
    return jax.tree.unflatten(jax.tree.structure(like), [restore_leaf(leaf, values[p]) for p, leaf in wanted.items()])
