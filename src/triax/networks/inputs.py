"""What layers ask of their inputs and carries."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from triax.networks.types import SizeError


def as_float(x: Any) -> Inexact[Array, "..."]:
    """An array of real numbers, for arithmetic: integers and booleans become float32, floats stay as they are."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32)


def check_array(layer: Any, x: Any, wanted: str) -> None:
    """Refuse an input that is no array, or a number: ``TypeError`` or ``ValueError``; ``wanted`` are its axes."""
    who = type(layer).__name__
    leaves = jax.tree.leaves(x)
    numbers = isinstance(x, list | tuple) and leaves and all(map(np.isscalar, leaves))
    if isinstance(x, str) or not (jax.tree_util.all_leaves([x]) or numbers):
        raise TypeError(
            f"{who}: takes one array {wanted}; got {_shown(x)}. "
            "A Filter or Map picks parts of a tree, a Flattener joins its leaves, a Concat what layers make of them."
        )
    if not np.shape(x):
        raise ValueError(f"{who}: takes an array {wanted}; got a number, without any axis.")


def check_features(layer: Any, x: Any, expected: int) -> None:
    """Refuse an input that is no array, or whose last axis is not ``expected`` long."""
    check_array(layer, x, f"[batch, {expected}]")
    if np.shape(x)[-1] != expected:
        raise SizeError(type(layer).__name__, expected, np.shape(x)[-1])


def check_carry(layer: Any, carry: Any, features: Sequence[tuple[int, ...]], batch: tuple[int, ...]) -> None:
    """Refuse a carry whose leaves are not ``batch``, the input's, and then ``features``, one entry a leaf."""
    who = type(layer).__name__
    leaves = jax.tree_util.tree_leaves_with_path(carry)
    fresh = f"initialize_state({math.prod(batch)})"
    if len(leaves) != len(features):
        raise ValueError(f"{who}: the carry must be like that of {fresh}, {len(features)} arrays; got {_shown(carry)}.")
    for (path, leaf), shape in zip(leaves, features, strict=True):
        if np.shape(leaf) != (*batch, *shape):
            name = f"the carry{jax.tree_util.keystr(path)}"
            no_batch = "Is the batch axis of the input missing? Then pass x[None]."
            hint = f"A fresh carry for it is {fresh}." if batch else no_batch
            raise ValueError(
                f"{who}: {name} has the shape {list(np.shape(leaf))}, and with an input of the batch {list(batch)} it "
                f"must be {[*batch, *shape]}. {hint}"
            )


def check_old_carry(layer: Any, carry: Any, features: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """As :func:`check_carry`, for a reset: the axes before the features of the first leaf, ``(batch,)`` or none."""
    first = np.shape((jax.tree.leaves(carry) or [0])[0])
    batch = first[: max(0, len(first) - len(features[0]))]
    check_carry(layer, carry, features, batch)
    return batch


def check_rows(who: str, output: Any) -> None:
    """Refuse an output with a leaf that lost all its axes, the batch too."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(output):
        if not np.shape(leaf):
            where = f" at {jax.tree_util.keystr(path)}" if path else ""
            raise ValueError(
                f"{who}: must give arrays [batch, ...]; got a number{where}, without any axis. "
                "Reduce over axis=-1 rather than over all axes, and never squeeze the batch."
            )


def _shown(x: Any) -> str:
    if isinstance(x, Mapping):
        return f"a dict with the keys {list(x)}"
    return "None" if x is None else f"a {type(x).__name__}"
