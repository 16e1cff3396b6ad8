"""The functions of ``jax.random``, with the same results, that triax draws with: faster inside small compiled programs.

Keys are the caller's own, typed or raw, before and after. While a program is traced, those of JAX's default
implementation draw by :mod:`triax.core.threefry`, bit for bit what JAX draws; all else is left to JAX.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax

from triax.core.key_types import is_typed_key
from triax.core.threefry import UNROLLED

F = TypeVar("F", bound=Callable[..., Any])

_THREEFRY = "threefry2x32"


def _can_unroll(key: Any) -> bool:
    """Whether the key is traced, and draws the bits that ``UNROLLED`` does."""
    if not isinstance(key, jax.core.Tracer) or not jax.config.jax_threefry_partitionable:  # type: ignore[attr-defined]
        return False
    if is_typed_key(key):
        return str(jax.random.key_impl(key)) == _THREEFRY
    return jax.config.jax_default_prng_impl == _THREEFRY  # type: ignore[attr-defined]


def _unrolled(key: Any) -> Any:
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=UNROLLED) if _can_unroll(key) else key


def _drawing(draw: F) -> F:
    @wraps(draw)
    def unrolled(key: Any, *args: Any, **options: Any) -> Any:
        return draw(_unrolled(key), *args, **options)

    return unrolled  # type: ignore[return-value]


def _deriving(derive: F) -> F:
    """Of keys: they are as the one they come from."""

    @wraps(derive)
    def unrolled(key: Any, *args: Any, **options: Any) -> Any:
        drawing = _unrolled(key)
        if drawing is key:
            return derive(key, *args, **options)
        data = jax.random.key_data(derive(drawing, *args, **options))
        return jax.random.wrap_key_data(data, impl=_THREEFRY) if is_typed_key(key) else data

    return unrolled  # type: ignore[return-value]


split = _deriving(jax.random.split)
fold_in = _deriving(jax.random.fold_in)
bits = _drawing(jax.random.bits)
categorical = _drawing(jax.random.categorical)
gumbel = _drawing(jax.random.gumbel)
normal = _drawing(jax.random.normal)
permutation = _drawing(jax.random.permutation)
randint = _drawing(jax.random.randint)
uniform = _drawing(jax.random.uniform)
