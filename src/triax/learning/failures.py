"""Errors of learning steps: left out because they were not finite, or failed while they held the weights."""

from typing import Any

import jax
from jaxtyping import PyTree

from triax.core.errors import LostWeightsError, NonFiniteError
from triax.core.tree_differences import named_leaves
from triax.core.trees import any_deleted


def non_finite_step(
    who: str, number: int, finite: list[bool], params: PyTree, function_state: PyTree
) -> NonFiniteError:
    """The error of a step that was left out; ``finite`` as in ``Step.finite``."""
    names = [*named_leaves(params, "params"), "the new weights", *named_leaves(function_state, "function_state")]
    blamed = ", ".join(name for name, ok in zip(names, finite, strict=True) if not ok)
    return NonFiniteError(
        f"{who}: step {number} had gradients or updates that are not finite, or too large to be"
        f" squared, in {blamed}. The step was left out: weights and optimizer state are as before."
        " Look for NaN or huge numbers in weights, rewards and the loss; a smaller learning rate or"
        " optax.clip_by_global_norm may help."
    )


def lost_in_step(who: str, trained: Any, error: BaseException) -> LostWeightsError:
    """The error of a step that took the weights of ``trained`` along."""
    function = type(trained).__name__
    return LostWeightsError(
        f"{who}: the weights of {function} and the optimizer state are lost: a step failed"
        f" ({type(error).__name__}) while it held them. Assign params and function_state of the {function} and"
        " optimizer_state of the rule from a checkpoint."
    )


def raise_if_lost(who: str, trained: Any, held: PyTree, context: PyTree, error: BaseException) -> None:
    """Say so if ``error`` came since arrays are gone: those that steps replace, or others that they read."""
    if any_deleted(held):
        lost = lost_in_step(who, trained, error)
    elif any_deleted(context):
        lost = LostWeightsError(
            f"{who}: the weights of another function that the rule reads are lost: a step of its own failed while it"
            " held them. Assign its params and function_state from a checkpoint."
        )
    else:
        return
    if isinstance(error, Exception):
        raise lost from error
    error.add_note(str(lost))  # KeyboardInterrupt stays what it is


def discard(held: PyTree) -> None:
    """Delete what a step gave that failed while it ran: such arrays raise whatever happened, wherever they are read."""
    for leaf in jax.tree.leaves(held):
        if isinstance(leaf, jax.Array):
            leaf.delete()
