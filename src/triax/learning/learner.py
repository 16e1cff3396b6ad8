"""A loss and an optimizer as pure functions; a step that would bring in NaN or infinity changes nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

from triax.core.diagnostics import get_grads_diagnostics

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
    """For each leaf of ``params``, then of ``function_state``, whether all was finite; if not, nothing was changed."""


class Learner(NamedTuple):
    """Pure functions: run them under ``jit``, ``vmap`` and ``scan`` as they are.

    * ``init(params) -> optimizer_state``
    * ``gradients(params, function_state, rng, context, batch) -> Gradients``
    * ``apply(params, function_state, optimizer_state, grads, new_function_state) -> (params, function_state,
      optimizer_state, finite)``
    * ``step(params, function_state, optimizer_state, rng, context, batch) -> Step``

    ``context`` is any pytree that the loss reads besides the weights it trains: target networks, coefficients.
    """

    init: Callable[[PyTree], PyTree]
    gradients: Callable[..., Gradients]
    apply: Callable[..., tuple]
    step: Callable[..., Step]


def make_learner(loss: Loss, optimizer: optax.GradientTransformation, *, prefix: str) -> Learner:
    """The learner of one loss; ``prefix`` names the metrics ``<prefix>/grads_max`` and ``<prefix>/grads_norm``.

    A step is left out when the norm of the gradients is not finite (NaN, infinity, or a sum of squares that overflows,
    which would leave Adam's second moments infinite for good), or when new weights or function state would not be.
    """

    def init(params: Any) -> PyTree:
        return jax.tree.map(_strongly_typed, optimizer.init(params))

    def gradients(params: Any, function_state: Any, rng: Any, context: Any, batch: Any) -> Gradients:
        grads, output = jax.grad(loss, has_aux=True)(params, function_state, rng, context, batch)
        metrics = {**output.metrics, **get_grads_diagnostics(_widened(grads), f"{prefix}/grads_")}
        return Gradients(grads, output._replace(metrics=metrics))

    def apply(params: Any, function_state: Any, optimizer_state: Any, grads: Any, new_function_state: Any) -> tuple:
        updates, new_optimizer_state = optimizer.update(grads, optimizer_state, params)
        old = params, function_state, optimizer_state
        new = optax.apply_updates(params, updates), new_function_state, new_optimizer_state
        new = jax.tree.map(lambda leaf, like: leaf if leaf.dtype == like.dtype else leaf.astype(like.dtype), new, old)
        kept, finite = _new_if_finite(grads, new, old)
        return *kept, finite

    def step(params: Any, function_state: Any, optimizer_state: Any, rng: Any, context: Any, batch: Any) -> Step:
        grads, output = gradients(params, function_state, rng, context, batch)
        params, function_state, optimizer_state, finite = apply(
            params, function_state, optimizer_state, grads, output.function_state
        )
        return Step(params, function_state, optimizer_state, output.metrics, output.per_sample, finite)

    return Learner(init, gradients, apply, step)


def _strongly_typed(leaf: Any) -> Array:
    """Optimizers start with Python numbers in their state, but return strong types: the second step would compile."""
    array = jnp.asarray(leaf)
    return array.astype(array.dtype) if getattr(array, "weak_type", False) else array


# ------------------------------------------------------------------ all or nothing

# On a CPU a branch costs less than a select of every array; elsewhere it would wait for the host to look at the
# condition. XLA runs up to eight operations of a branch in a row, but hands more to other threads, which costs most.
LEAVES_PER_BRANCH = 7


def _new_if_finite(grads: PyTree, new: PyTree, old: PyTree) -> tuple[PyTree, Bool[Array, " leaves"]]:
    """``new`` and all true; or ``old``, and which leaves are to blame."""
    grads = _widened(grads)
    gradients_norm = get_grads_diagnostics(grads)["norm"]
    largest_weight = get_grads_diagnostics(new[0])["max"]
    state_leaves = zip(jax.tree.leaves(new[1]), jax.tree.leaves(old[1]), strict=True)
    spoiled = jnp.array([_is_spoiled(*leaves) for leaves in state_leaves], dtype=bool)
    ok = jnp.isfinite(gradients_norm) & jnp.isfinite(largest_weight) & ~jnp.any(spoiled)
    leaves, structure = jax.tree.flatten(new)
    leaves = jax.lax.platform_dependent(ok, leaves, jax.tree.leaves(old), cpu=_branch, default=_select)
    finite = jax.lax.platform_dependent(ok, grads, new[0], spoiled, cpu=_flags_by_branch, default=_flags)
    return jax.tree.unflatten(structure, leaves), finite


def _select(ok: Bool[Array, ""], new: list[Array], old: list[Array]) -> list[Array]:
    return [jnp.where(ok, a, b) for a, b in zip(new, old, strict=True)]


def _branch(ok: Bool[Array, ""], new: list[Array], old: list[Array]) -> list[Array]:
    kept: list[Array] = []
    for start in range(0, len(new), LEAVES_PER_BRANCH):
        part = slice(start, start + LEAVES_PER_BRANCH)
        kept += jax.lax.cond(ok, lambda a, b: a, lambda a, b: b, new[part], old[part])
    return kept


def _flags(ok: Bool[Array, ""], grads: PyTree, params: PyTree, spoiled: Bool[Array, "..."]) -> Bool[Array, " leaves"]:
    """For each leaf whether its gradients do not make the norm overflow, and the new weights are finite."""
    leaves = jax.tree.leaves(grads)
    # If the sum of squares over all leaves overflows, then the largest times their number does.
    squares = [2 * len(leaves) * jnp.sum(jnp.square(jnp.abs(leaf))) for leaf in leaves]
    weights = zip(squares, jax.tree.leaves(params), strict=True)
    flags = [jnp.isfinite(square) & jnp.all(jnp.isfinite(leaf)) for square, leaf in weights]
    return jnp.concatenate([jnp.array(flags, dtype=bool), ~spoiled])


def _flags_by_branch(ok: Bool[Array, ""], *args: PyTree) -> Bool[Array, " leaves"]:
    size = jax.eval_shape(_flags, ok, *args).shape
    return jax.lax.cond(ok, lambda *args: jnp.ones(size, bool), lambda *args: _flags(ok, *args), *args)


def _widened(grads: PyTree) -> PyTree:
    """Half precision as float32: squares of float16 overflow from 256 on."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)), grads)


def _is_spoiled(new: Array, old: Array) -> Bool[Array, ""]:
    """Whether something that was finite no longer is."""
    if not jnp.issubdtype(new.dtype, jnp.inexact):
        return jnp.zeros((), bool)
    return jnp.any(jnp.isfinite(old) & ~jnp.isfinite(new))
