"""Numbers that tell how a pytree of gradients or parameters is doing."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from triax.core.trees import tree_ravel


def get_grads_diagnostics(grads: PyTree, key_prefix: str = "", keep_tree_structure: bool = False) -> PyTree:
    """Largest absolute entry and L2 norm, under the keys ``max`` and ``norm`` with a prefix; traceable.

    Of all gradients together, or with ``keep_tree_structure`` a pytree like ``grads`` with one such dict
    in the place of each leaf.
    """
    if keep_tree_structure:
        return jax.tree.map(lambda leaf: get_grads_diagnostics(leaf, key_prefix), grads)
    magnitudes = jnp.abs(tree_ravel(grads))
    return {
        f"{key_prefix}max": jnp.max(magnitudes, initial=0),
        f"{key_prefix}norm": jnp.linalg.norm(magnitudes),
    }


def get_magnitude_quantiles(pytree: PyTree, key_prefix: str = "") -> dict[str, Float[Array, ""]]:
    """Quartiles of the entries' absolute values: ``min, p25, p50, p75, max``, each prefixed; traceable."""
    quartiles = jnp.quantile(jnp.abs(tree_ravel(pytree)), jnp.linspace(0, 1, 5))
    return {key_prefix + name: q for name, q in zip(("min", "p25", "p50", "p75", "max"), quartiles, strict=True)}
