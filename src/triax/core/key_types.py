"""What kind of PRNG key a leaf is, if it is one."""

from typing import Any

import jax
import jax.numpy as jnp


def is_typed_key(leaf: Any) -> bool:
    """Whether it is an array, or the struct of one, of typed keys; raw ones are numbers like others."""
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_implementation(key: Any) -> str:
    """The name of a typed key's implementation, of a struct too."""
    names: list[str] = []
    jax.eval_shape(lambda traced: names.append(str(jax.random.key_impl(traced))), key)
    return names[0]
