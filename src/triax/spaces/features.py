"""Whatever a space holds as rows of floats, for networks that take nothing else."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from triax.spaces.preprocess import default_preprocessor
from triax.spaces.sample import sample_batch


def features_of(space: Any) -> Callable[[PyTree], Float[Array, "batch features"]]:
    """A function that preprocesses and flattens a batch: one-hots of what is discrete, and all else, side by side."""
    prepare = default_preprocessor(space)

    def features(batch: PyTree) -> Float[Array, "batch features"]:
        return flatten(prepare(None, batch))

    return features


def num_features(space: Any) -> int:
    """The number that ``features_of`` makes."""
    return jax.eval_shape(lambda: features_of(space)(sample_batch(space, 1, 0))).shape[-1]


def flatten(S: PyTree) -> Float[Array, "batch features"]:
    """All leaves of a preprocessed batch side by side; bytes, such as pixels, in [0, 1]."""
    leaves = [_as_float(leaf).reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(S)]
    return jnp.concatenate(leaves, axis=-1)


def _as_float(leaf: Array) -> Array:
    return leaf / 255.0 if leaf.dtype == jnp.uint8 else leaf.astype(jnp.float32)
