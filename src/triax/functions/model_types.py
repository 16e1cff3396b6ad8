"""Type 1, ``f(s, a)``, and type 2, ``f(s, .)``, turned into each other for any pytree of outputs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

Forward = Callable[..., tuple]
"""``(params, function_state, rng, carry, *inputs, is_training) -> (output, carry, function_state)``."""


def pick_action(output: PyTree, weights: Float[Array, "batch actions"]) -> PyTree:
    """The entries of the action axis (axis 1 of every leaf), summed with ``weights``: one-hot weights pick one."""

    def pick(leaf: Array) -> Array:
        expanded = weights.reshape(weights.shape + (1,) * (leaf.ndim - 2)).astype(leaf.dtype)
        # An unavailable action may be at -inf, and 0 * inf is NaN.
        return jnp.sum(jnp.where(expanded == 0, 0, expanded * leaf), axis=1)

    return jax.tree.map(pick, output)


def as_type1(forward_type2: Forward) -> Forward:
    """``f(S, A)`` from ``f(S)``; ``A`` is one-hot, or weights of a mean over the actions."""

    def forward(params: Any, function_state: Any, rng: Any, carry: Any, S: Any, A: Any, is_training: bool) -> tuple:
        output, carry, function_state = forward_type2(params, function_state, rng, carry, S, is_training)
        return pick_action(output, A), carry, function_state

    return forward


def as_type2(forward_type1: Forward, actions: PyTree) -> Forward:
    """``f(S)`` from ``f(S, A)``: every state meets every one of the ``actions`` (leaves ``[actions, ...]``)."""
    num_actions = jax.tree.leaves(actions)[0].shape[0]

    def forward(params: Any, function_state: Any, rng: Any, carry: Any, S: Any, is_training: bool) -> tuple:
        batch_size = jax.tree.leaves(S)[0].shape[0]
        S = jax.tree.map(lambda leaf: jnp.repeat(leaf, num_actions, axis=0), S)
        A = jax.tree.map(lambda leaf: jnp.tile(leaf, (batch_size,) + (1,) * (leaf.ndim - 1)), actions)
        output, carry, function_state = forward_type1(params, function_state, rng, carry, S, A, is_training)
        output = jax.tree.map(lambda leaf: leaf.reshape(batch_size, num_actions, *leaf.shape[1:]), output)
        return output, carry, function_state

    return forward
