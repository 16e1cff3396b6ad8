"""From clean arrays to what a network sees by default."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array

from triax.spaces.bounds import BoxBounds, canonical_dtype
from triax.spaces.checks import check_space, describe
from triax.spaces.encode import discrete_range

Preprocessor = Callable[[Any, Any], Any]
"""``f(rng, X)``: one element or a batch in, a batch out."""


def default_preprocessor(space: spaces.Space) -> Preprocessor:
    """A traceable ``f(rng, X)`` from one element or a batch of elements to a batch of network inputs.

    * ``Discrete(n)``: one-hot float32 ``(B, n)``; value ``start`` is the first
    * ``Box``: ``(B, *shape)`` in the space's dtype as JAX holds it, clipped to the bounds, not scaled
    * ``MultiDiscrete``: list of one-hots ``(B, n_i)``, one for each of ``nvec.ravel()``
    * ``MultiBinary``: float32 ``(B, *shape)``
    * ``Tuple``, ``Dict``: tuple or dict of the parts

    ``rng`` is not used. Raises ``TypeError`` for a space that is not supported; the function raises
    ``ValueError`` for a wrong shape.
    """
    check_space(space, who="default_preprocessor", argument="space")
    return _preprocessor(space)


def to_batch(X: Any, shape: tuple[int, ...], space: spaces.Space) -> Array:
    """``X`` with a batch axis, which it may lack, before the axes of one element's ``shape``."""
    X = jnp.asarray(X)
    if X.shape == shape:
        return X[None]
    if X.ndim == len(shape) + 1 and X.shape[1:] == shape:
        return X
    raise ValueError(
        f"preprocessor of {describe(space)}: expected one element, shape {shape}, or a batch of them; got {X.shape}."
    )


def one_hot(X: Array, first: int, n: int, space: spaces.Space) -> Array:
    """Float32 one-hots of the integers ``first`` to ``first + n - 1``, on a new last axis."""
    if not jnp.issubdtype(X.dtype, jnp.integer) and X.dtype != bool:
        raise ValueError(f"preprocessor of {describe(space)}: expected integers; got {X.dtype}.")
    return (X[..., None] == np.arange(first, first + n, dtype=np.int32)).astype(jnp.float32)


@functools.singledispatch
def _preprocessor(space: spaces.Space) -> Preprocessor:
    raise NotImplementedError(f"no default preprocessor of {describe(space)}")


@_preprocessor.register
def _(space: spaces.Discrete) -> Preprocessor:
    return lambda rng, X: one_hot(to_batch(X, (), space), int(space.start), int(space.n), space)


@_preprocessor.register
def _(space: spaces.Box) -> Preprocessor:
    dtype, bounds = canonical_dtype(space), BoxBounds.of(space)
    is_bounded = bool((space.bounded_below | space.bounded_above).any()) and dtype.kind != "b"

    def preprocess(rng: Any, X: Any) -> Array:
        X = to_batch(X, space.shape, space)
        return (jnp.clip(X, bounds.low, bounds.high) if is_bounded else X).astype(dtype)

    return preprocess


@_preprocessor.register
def _(space: spaces.MultiDiscrete) -> Preprocessor:
    first, sizes = discrete_range(space)[0].ravel().tolist(), space.nvec.ravel().tolist()

    def preprocess(rng: Any, X: Any) -> list[Array]:
        X = to_batch(X, space.shape, space).reshape(-1, len(sizes))
        return [one_hot(X[:, k], first[k], sizes[k], space) for k in range(len(sizes))]

    return preprocess


@_preprocessor.register
def _(space: spaces.MultiBinary) -> Preprocessor:
    return lambda rng, X: to_batch(X, space.shape, space).astype(jnp.float32)


@_preprocessor.register(spaces.Tuple)
def _(space: Any) -> Preprocessor:
    parts = tuple(_preprocessor(part) for part in space.spaces)
    return lambda rng, X: tuple(part(rng, x) for part, x in zip(parts, X, strict=True))


@_preprocessor.register(spaces.Dict)
def _(space: Any) -> Preprocessor:
    parts = {key: _preprocessor(part) for key, part in space.spaces.items()}
    return lambda rng, X: {key: part(rng, X[key]) for key, part in parts.items()}
