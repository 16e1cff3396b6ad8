"""PRNG keys: one key per purpose, derived by name, so that adding a purpose changes no other."""

import secrets
import zlib
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, UInt

from triax.core import random
from triax.core.key_types import is_typed_key
from triax.core.numbers import check_seed

Key = Array
"""A JAX PRNG key: typed (``jax.random.key``) or raw ``uint32[2]`` (``jax.random.PRNGKey``)."""


def seed_or_entropy(seed: Any) -> int:
    """The seed itself, or 31 fresh bits of entropy for ``None``; no global generator is touched.

    Raises ``TypeError`` unless it is an int (a truth value is none), ``ValueError`` unless it is in [0, 2^32).
    """
    return secrets.randbits(31) if seed is None else check_seed("random_seed", seed)


def make_generator(seed: Any, name: str = "random_seed") -> np.random.Generator:
    """A NumPy generator of the seed, checked as by ``seed_or_entropy``; of fresh entropy for ``None``."""
    return np.random.default_rng(None if seed is None else check_seed(name, seed))


def make_key(seed: Any) -> Key:
    """A raw ``uint32[2]`` key of the seed; raw keys pass into jitted calls faster than typed ones."""
    return jax.random.PRNGKey(seed_or_entropy(seed))


def as_typed_key(rng: Key) -> Key:
    """The key as a typed one of JAX's default implementation, as networks hold them; traceable.

    A key of another implementation (``rbg``) decides which one it is.
    """
    if not is_typed_key(rng):
        return jax.random.wrap_key_data(rng)
    if str(jax.random.key_impl(rng)) == jax.config.jax_default_prng_impl:  # type: ignore[attr-defined]
        return rng
    return jax.random.key(random.bits(rng))


def fold_name(rng: Key, name: str) -> Key:
    """The child key of ``rng`` that belongs to ``name``; traceable."""
    return random.fold_in(rng, zlib.crc32(name.encode()) & 0x7FFFFFFF)


Draw = tuple[Key, UInt[Array, ""] | np.uint32]
"""A key and a number, the arguments of ``jax.random.fold_in``: the ingredients of a fresh key."""


class KeyStream:
    """Fresh keys, counted on the host: the key of a jitted call is folded inside it, free where it is not used."""

    def __init__(self, key: Key) -> None:
        self._key, self._count = key, 0

    @property
    def position(self) -> tuple[Key, int]:
        """Where the stream is: one that it is assigned to gives the same keys from here on, as a resumed run does."""
        return self._key, self._count

    @position.setter
    def position(self, position: tuple[Key, int]) -> None:
        self._key, self._count = position

    def draw(self) -> Draw:
        """The ingredients of the next key."""
        self._count += 1
        if self._count == 2**32:
            self._key, self._count = random.fold_in(self._key, 0), 1
        return self._key, np.uint32(self._count)

    def key(self) -> Key:
        """The next key."""
        return _fold(*self.draw())


_fold = jax.jit(random.fold_in)
