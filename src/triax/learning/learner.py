"""A loss and an optimizer as two pure functions; a step that would bring in NaN or infinity changes nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

Loss = Callable[..., tuple[Float[Array, ""], "LossOutput"]]
"""``(params, function_state, rng, context, batch) -> (loss, LossOutput)``."""


class LossOutput(NamedTuple):
    """What a loss gives besides its value."""

    function_state: PyTree
    metrics: dict[str, Any]
    per_sample: Any = None
    """An array ``[batch]`` that the rule reports, such as the TD error."""


class Gradients(NamedTuple):
    """Gradients of one batch, and what came with them."""

    grads: PyTree
    output: LossOutput


class Step(NamedTuple):
    """What one learning step leaves."""

    params: PyTree
    function_state: PyTree
    optimizer_state: PyTree
    metrics: dict[str, Any]
    per_sample: Any
    finite: Bool[Array, " leaves"]
    """For each leaf of ``params`` whether its gradient and update were finite; if not all, nothing was changed."""


class Learner(NamedTuple):
    """Pure functions: run them under ``jit``, ``vmap`` and ``scan`` as they are.

    * ``init(params) -> optimizer_state``
    * ``gradients(params, function_state, rng, context, batch) -> Gradients``
    * ``apply(params, function_state, optimizer_state, grads, new_function_state) -> (params, ..., finite)``
    * ``step(params, function_state, optimizer_state, rng, context, batch) -> Step``

    ``context`` is any pytree that the loss reads besides the weights it trains: target networks, coefficients.
    """

    init: Callable[[PyTree], PyTree]
    gradients: Callable[..., Gradients]
    apply: Callable[..., tuple]
    step: Callable[..., Step]


def make_learner(loss: Loss, optimizer: optax.GradientTransformation, *, prefix: str) -> Learner:
    """The learner of one loss; ``prefix`` names the metrics ``<prefix>/grads_max`` and ``<prefix>/grads_norm``."""

    def gradients(params: Any, function_state: Any, rng: Any, context: Any, batch: Any) -> Gradients:
        grads, output = jax.grad(loss, has_aux=True)(params, function_state, rng, context, batch)
        metrics = {**output.metrics, **grads_metrics(grads, prefix)}
        return Gradients(grads, output._replace(metrics=metrics))

    def apply(params: Any, function_state: Any, optimizer_state: Any, grads: Any, new_function_state: Any) -> tuple:
        updates, new_optimizer_state = optimizer.update(grads, optimizer_state, params)
        finite = finite_leaves(grads) & finite_leaves(updates)
        new = optax.apply_updates(params, updates), new_function_state, new_optimizer_state
        kept = keep_unless(jnp.all(finite), new, (params, function_state, optimizer_state))
        return *kept, finite

    def step(params: Any, function_state: Any, optimizer_state: Any, rng: Any, context: Any, batch: Any) -> Step:
        grads, output = gradients(params, function_state, rng, context, batch)
        params, function_state, optimizer_state, finite = apply(
            params, function_state, optimizer_state, grads, output.function_state
        )
        return Step(params, function_state, optimizer_state, output.metrics, output.per_sample, finite)

    return Learner(optimizer.init, gradients, apply, step)


def finite_leaves(tree: PyTree) -> Bool[Array, " leaves"]:
    """For each leaf whether all its numbers are finite."""
    return jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)], dtype=bool)


def keep_unless(condition: Bool[Array, ""], new: PyTree, old: PyTree) -> PyTree:
    """``new`` where ``condition`` holds, else ``old``."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def grads_metrics(grads: PyTree, prefix: str) -> dict[str, Float[Array, ""]]:
    """Largest absolute entry and L2 norm of all gradients."""
    leaves = [jnp.abs(leaf) for leaf in jax.tree.leaves(grads) if leaf.size] or [jnp.zeros(1)]
    largest = jnp.max(jnp.array([jnp.max(leaf) for leaf in leaves]))
    return {f"{prefix}/grads_max": largest, f"{prefix}/grads_norm": optax.tree.norm(grads)}
