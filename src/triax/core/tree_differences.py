"""What differs between two pytrees of arrays, in words that name the leaves."""

from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

_SHOWN = 8
_LEAF = np.zeros(())


def named_leaves(tree: PyTree, name: str = "") -> dict[str, Any]:
    """Leaves by their path, such as ``params['dense']['kernel']`` for the name ``params``."""
    return {name + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def describe_difference(expected: PyTree, found: PyTree, name: str = "params") -> str | None:
    """``None`` when structure, shapes and dtypes agree, else a text that says which leaves differ and how.

    Leaves are arrays, shape structs or numbers. The text has one line a leaf, at most eight.
    """
    wanted, got = named_leaves(expected, name), named_leaves(found, name)
    lines = [f"{path}: missing, expected {describe_leaf(wanted[path])}" for path in wanted if path not in got]
    lines += [f"{path}: not expected, got {describe_leaf(got[path])}" for path in got if path not in wanted]
    lines += [
        f"{path}: expected {describe_leaf(leaf)}, got {describe_leaf(got[path])}"
        for path, leaf in wanted.items()
        if path in got and describe_leaf(leaf) != describe_leaf(got[path])
    ]
    structures = jax.tree.structure(expected), jax.tree.structure(found)
    if not lines and structures[0] != structures[1]:
        lines = [f"{name}: expected the structure {structures[0]}, got {structures[1]}"]
    if not lines:
        return None
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([f"{name} differs from what is expected:", *lines[:_SHOWN], *more])


def describe_structure(tree: PyTree) -> str:
    """A tree, or its ``PyTreeDef``, as one would write it: ``{'logits': array}``, ``LSTMCarry(h=array, c=array)``."""
    if isinstance(tree, jax.tree_util.PyTreeDef):
        tree = jax.tree.unflatten(tree, [_LEAF] * tree.num_leaves)
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {describe_structure(part)}" for key, part in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(describe_structure, tree)) + "]"
    names = getattr(tree, "_fields", None)
    if names is not None:
        parts = ", ".join(f"{name}={describe_structure(getattr(tree, name))}" for name in names)
        return f"{type(tree).__name__}({parts})"
    if isinstance(tree, tuple):
        return "(" + ", ".join(map(describe_structure, tree)) + ("," if len(tree) == 1 else "") + ")"
    if tree is None or jax.tree_util.all_leaves([tree]):
        return "None" if tree is None else "array"
    return f"{type(tree).__name__} with {len(jax.tree.leaves(tree))} arrays"


def describe_leaf(leaf: Any) -> str:
    """Dtype and shape as in ``float32[3,4]``."""
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        leaf = np.asarray(leaf)
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
