"""What layers ask of their inputs."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Inexact


def as_float(x: Any) -> Inexact[Array, "..."]:
    """An array of real numbers, for arithmetic: integers and booleans become float32, floats stay as they are."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32)
