"""Functions of pytrees of arrays: batches of one, stacks, vectors, copies, shared parameters.

NumPy leaves stay NumPy arrays wherever nothing has to be computed.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num, PyTree

from triax.core.tree_differences import describe_difference


def batch_to_single(pytree: PyTree, index: int = 0) -> PyTree:
    """One item of a batch: ``leaf[index]`` of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], pytree)


def single_to_batch(pytree: PyTree) -> PyTree:
    """A batch of one: a new axis 0 on every leaf; numbers become NumPy arrays."""
    return jax.tree.map(lambda leaf: (leaf if hasattr(leaf, "shape") else np.asarray(leaf))[None], pytree)


def stack_trees(*trees: Sequence[PyTree]) -> tuple[PyTree, ...]:
    """For each sequence of alike pytrees, one pytree of their leaves stacked along a new axis 0.

    ``stack_trees([p1, p2], [s1, s2])`` is ``(p, s)``. Raises ``ValueError`` for an empty sequence or for
    trees that differ in structure or shapes.
    """
    return tuple(_stack(sequence) for sequence in trees)


def _stack(sequence: Sequence[PyTree]) -> PyTree:
    if not len(sequence):
        raise ValueError("stack_trees: each argument must hold at least one pytree; got an empty sequence")
    try:
        return jax.tree.map(_stack_leaves, *sequence)
    except ValueError as error:
        raise ValueError(f"stack_trees: trees must have one structure and one shape a leaf: {error}") from None


def _stack_leaves(*leaves: Any) -> Any:
    on_device = any(isinstance(leaf, jax.Array) for leaf in leaves)
    return jnp.stack([jnp.asarray(leaf) for leaf in leaves]) if on_device else np.stack(leaves)


def tree_ravel(pytree: PyTree) -> Num[Array, " n"]:
    """All leaves flattened into one vector of their common dtype, in the order of ``jax.tree.leaves``."""
    return jax.flatten_util.ravel_pytree(pytree)[0]


@jax.jit
def copy_arrays(tree: PyTree) -> PyTree:
    """The tree with fresh buffers on the device, dtypes kept: safe to donate. One jitted call."""
    return jax.tree.map(jnp.copy, tree)


def strongly_typed(tree: PyTree) -> PyTree:
    """The tree without weakly typed arrays, for which everything would compile again; nothing is compiled here."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if getattr(leaf, "weak_type", False) else leaf, tree)


def any_deleted(tree: PyTree) -> bool:
    """Whether an array in it is gone, because a jitted call took its memory over."""
    return any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in jax.tree.leaves(tree))


def merge_dicts(*dicts: Mapping) -> dict:
    """The union of dicts; where they share a key the later one wins, with a warning that names it."""
    merged: dict = {}
    for mapping in dicts:
        shared = sorted(str(key) for key in merged.keys() & mapping.keys())
        if shared:
            warnings.warn(f"merge_dicts: keys in more than one dict, the last wins: {shared}", stacklevel=2)
        merged.update(mapping)
    return merged


def chunks_pow2(transition_batch: PyTree) -> Iterator[PyTree]:
    """Consecutive slices of a batch along axis 0 whose sizes are powers of two, largest first.

    Jitted functions then see at most ``log2`` of the largest batch many shapes.
    """
    remaining = jax.tree.leaves(transition_batch)[0].shape[0]
    start = 0
    while remaining:
        size = 1 << (remaining.bit_length() - 1)
        chunk = slice(start, start + size)
        yield jax.tree.map(lambda leaf, chunk=chunk: leaf[chunk], transition_batch)
        start, remaining = start + size, remaining - size


def sync_shared_params(*params: Mapping, weights: Sequence[float] | None = None) -> tuple[Mapping, ...]:
    """Replace each top-level key that two or more parameter dicts have by its weighted mean, in all of them.

    Values below a key are pytrees of one structure (a module's parameters); leaves that are not floating
    stay as they are. ``weights`` has one number per dict, normalised over the dicts that have the key;
    equal by default. Returns new dicts in input order, which share no buffer of a replaced leaf; fewer than
    two come back unchanged. Raises ``ValueError`` when the number of weights differs, when those of a key
    have no positive sum, or when structures differ.
    """
    if weights is not None and len(weights) != len(params):
        raise ValueError(
            f"sync_shared_params: weights must have one number per dict, {len(params)}; got {len(weights)}"
        )
    shares = np.ones(len(params), np.float32) if weights is None else np.asarray(weights, np.float32)
    owners = _owners_of_shared_keys(params)
    values = {key: [params[k][key] for k in ks] for key, ks in owners.items()}
    normalised = {key: _normalise(key, shares[ks]) for key, ks in owners.items()}
    for key, trees in values.items():
        _require_alike(key, trees)
    if not owners:
        return params
    means = _weighted_means(values, normalised)
    synced = [dict(mapping) for mapping in params]
    for key, ks in owners.items():
        for k, mean in zip(ks, means[key], strict=True):
            synced[k][key] = mean
    return tuple(synced)


def _owners_of_shared_keys(params: Sequence[Mapping]) -> dict[str, list[int]]:
    owners = defaultdict(list)
    for k, mapping in enumerate(params):
        for key in mapping:
            owners[key].append(k)
    return {key: ks for key, ks in owners.items() if len(ks) > 1}


def _normalise(key: str, shares: np.ndarray) -> np.ndarray:
    total = shares.sum()
    if not (np.all(shares >= 0) and 0 < total < np.inf):
        raise ValueError(
            f"sync_shared_params: weights of the dicts that share {key!r} must be non-negative, with a "
            f"positive sum; got {shares.tolist()}"
        )
    return shares / total


def _require_alike(key: str, values: list[PyTree]) -> None:
    for value in values[1:]:
        difference = describe_difference(values[0], value, f"params[{key!r}]")
        if difference:
            raise ValueError(f"sync_shared_params: {difference}")


@jax.jit
def _weighted_means(values: dict[str, list[PyTree]], shares: dict[str, Array]) -> dict[str, list[PyTree]]:
    return {key: _replace_by_mean(trees, shares[key]) for key, trees in values.items()}


def _replace_by_mean(trees: list[PyTree], shares: Array) -> list[PyTree]:
    def mean(own: Array, *leaves: Array) -> Array:
        own = jnp.asarray(own)
        if not jnp.issubdtype(own.dtype, jnp.floating):
            return own
        terms = (share * leaf for share, leaf in zip(shares, leaves, strict=True))
        return sum(terms, start=jnp.zeros_like(own)).astype(own.dtype)

    return [jax.tree.map(mean, tree, *trees) for tree in trees]
