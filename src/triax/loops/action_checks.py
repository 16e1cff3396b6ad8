"""Whether what an agent acts out is of the environment's action space; shapes alone, nothing is computed."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
from gymnasium.spaces import Box, Dict, Tuple
from jaxtyping import PyTree

from triax.core.tree_differences import describe_leaf, named_leaves
from triax.spaces import check_space, sample_batch


def check_actions(who: str, actions: PyTree, space: gymnasium.Space | None) -> None:
    """``ValueError`` unless a batch of actions, arrays or shape structs, is of ``space``; ``None`` allows all.

    The tree, the shapes ``[batch, ...]``, and the kind: whole numbers where the space has choices, floats in a
    ``Box`` of floats. A ``Box`` of ints takes both.
    """
    if space is None:
        return
    check_space(space, who=who, argument="env.action_space")
    wanted, found = named_leaves(sample_batch(space, 1, 0), "action"), named_leaves(actions, "action")
    boxes = named_leaves(_are_boxes(space), "action")
    if wanted.keys() == found.keys() and all(_is_alike(wanted[name], found[name], boxes[name]) for name in wanted):
        return
    raise ValueError(
        f"{who}: the network's actions must be of env.action_space, {space}: expected for each environment"
        f" {_shown(wanted)}; got {_shown(found)}. Try make_mlp_actor_critic(obs_size, env.action_space, ...), or a"
        " network that ends in DistributionSampler(env.action_space, ...)."
    )


def _are_boxes(space: gymnasium.Space) -> PyTree:
    """Of each leaf, whether it is a ``Box``."""
    if isinstance(space, Dict):
        return {name: _are_boxes(part) for name, part in space.spaces.items()}
    return tuple(map(_are_boxes, space.spaces)) if isinstance(space, Tuple) else isinstance(space, Box)


def _is_alike(wanted: Any, found: Any, is_box: bool) -> bool:
    """In shape, without the batch axis, and in kind."""
    kind_fits = is_box if _is_float(found) else not _is_float(wanted)
    return wanted.shape[1:] == found.shape[1:] and kind_fits


def _is_float(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.floating))


def _shown(leaves: dict[str, Any]) -> str:
    """Without the batch axis."""
    rows = {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in leaves.items()}
    return ", ".join(f"{name}: {describe_leaf(row)}" for name, row in rows.items()) or "nothing"
