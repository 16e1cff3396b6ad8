"""A loss and an optimizer as pure functions; a step that would bring in NaN or infinity changes nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PyTree

from triax.core.sharding import same_everywhere
from triax.core.trees import tree_ravel

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
    finite: Bool[Array, " flags"]
    """Of the gradients of each leaf, of the new weights, of each leaf of the function state; if not all, nothing was
    changed."""


class Learner(NamedTuple):
    """Pure functions: run them under ``jit``, ``vmap`` and ``scan`` as they are.

    * ``loss(params, function_state, rng, context, batch) -> (loss, LossOutput)``
    * ``init(params) -> optimizer_state``
    * ``gradients(params, function_state, rng, context, batch) -> Gradients``
    * ``apply(params, function_state, optimizer_state, grads, new_function_state) -> (params, function_state,
      optimizer_state, finite)``
    * ``step(params, function_state, optimizer_state, rng, context, batch) -> Step``

    ``context`` is any pytree that the loss reads besides the weights it trains: target networks, coefficients.
    """

    loss: Loss
    init: Callable[[PyTree], PyTree]
    gradients: Callable[..., Gradients]
    apply: Callable[..., tuple]
    step: Callable[..., Step]


def make_learner(loss: Loss, optimizer: optax.GradientTransformation, *, prefix: str) -> Learner:
    """The learner of one loss; ``prefix`` names the metrics ``<prefix>/grads_max`` and ``<prefix>/grads_norm``.

    A step is left out when the norm of the gradients is not finite (NaN, infinity, or a sum of squares that overflows,
    which would leave Adam's second moments infinite for good), or when new weights or function state would not be.
    The loss is not looked at: it is only reported, and may overflow where its gradient is right, as that of ``huber``
    does in a mean of huge errors, each of which pulls with force one.
    """

    def init(params: Any) -> PyTree:
        return jax.tree.map(_strongly_typed, optimizer.init(params))

    def differentiate(*args: Any) -> tuple[Gradients, _Magnitudes]:
        grads, output = jax.grad(loss, has_aux=True)(*args)
        grads = same_everywhere(grads)
        magnitudes = _Magnitudes.of(grads)
        metrics = {**output.metrics, **magnitudes.metrics(f"{prefix}/grads_")}
        return Gradients(grads, output._replace(metrics=metrics)), magnitudes

    def gradients(params: Any, function_state: Any, rng: Any, context: Any, batch: Any) -> Gradients:
        return differentiate(params, function_state, rng, context, batch)[0]

    def move(old: tuple, grads: Any, new_function_state: Any, magnitudes: _Magnitudes) -> tuple:
        params, _, optimizer_state = old
        updates, new_optimizer_state = optimizer.update(grads, optimizer_state, params)
        new = optax.apply_updates(params, updates), new_function_state, new_optimizer_state
        new = jax.tree.map(lambda leaf, like: leaf if leaf.dtype == like.dtype else leaf.astype(like.dtype), new, old)
        return _new_if_finite(magnitudes, new, old)

    def apply(params: Any, function_state: Any, optimizer_state: Any, grads: Any, new_function_state: Any) -> tuple:
        old = params, function_state, optimizer_state
        kept, finite = move(old, grads, new_function_state, _Magnitudes.of(grads))
        return *kept, finite

    def step(params: Any, function_state: Any, optimizer_state: Any, rng: Any, context: Any, batch: Any) -> Step:
        (grads, output), magnitudes = differentiate(params, function_state, rng, context, batch)
        old = params, function_state, optimizer_state
        (params, function_state, optimizer_state), finite = move(old, grads, output.function_state, magnitudes)
        return Step(params, function_state, optimizer_state, output.metrics, output.per_sample, finite)

    return Learner(loss, init, gradients, apply, step)


def _strongly_typed(leaf: Any) -> Array:
    """Optimizers start with Python numbers in their state, but return strong types: the second step would compile."""
    array = jnp.asarray(leaf)
    return array.astype(array.dtype) if getattr(array, "weak_type", False) else array


class _Magnitudes(NamedTuple):
    """How large gradients are; NaN and infinity show in both."""

    squares: Float[Array, " leaves"]
    """The squared norm of each leaf."""
    largest: Float[Array, ""]

    @classmethod
    def of(cls, grads: PyTree) -> "_Magnitudes":
        # One vector, for real: XLA pays by operation on a CPU, and would otherwise compute gradients again for each.
        # Half precision as float32, since squares of float16 overflow from 256 on.
        leaves = [leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)) for leaf in jax.tree.leaves(grads)]
        magnitudes = jax.lax.optimization_barrier(jnp.abs(tree_ravel(leaves)))
        ends = np.cumsum([leaf.size for leaf in leaves], dtype=int)
        parts = [magnitudes[end - leaf.size : end] for leaf, end in zip(leaves, ends, strict=True)]
        squares = jnp.array([jnp.sum(jnp.square(part)) for part in parts])
        return cls(squares, jnp.max(magnitudes, initial=0))

    def metrics(self, prefix: str) -> dict[str, Float[Array, ""]]:
        return {f"{prefix}max": self.largest, f"{prefix}norm": jnp.sqrt(jnp.sum(self.squares))}


# ------------------------------------------------------------------ all or nothing


# On a CPU a branch costs next to nothing, but a select of every array a pass over memory; elsewhere a branch would wait
# for the host to look at the condition. XLA runs up to eight operations of a branch in a row, and hands more to other
# threads: one branch for all leaves of a small network costs 20 % of its step.
LEAVES_PER_BRANCH = 7


def _new_if_finite(magnitudes: _Magnitudes, new: PyTree, old: PyTree) -> tuple[PyTree, Bool[Array, " flags"]]:
    """``new`` and all true; or ``old``, and what is to blame, in the order of ``Step.finite``."""
    squares = magnitudes.squares
    weights_fine = jnp.isfinite(jnp.max(jnp.abs(tree_ravel(new[0])), initial=0))
    state_leaves = zip(jax.tree.leaves(new[1]), jax.tree.leaves(old[1]), strict=True)
    state_fine = jnp.array([_stays_finite(*leaves) for leaves in state_leaves], dtype=bool)
    ok = jnp.isfinite(jnp.sum(squares)) & weights_fine & jnp.all(state_fine)
    leaves, structure = jax.tree.flatten(new)
    leaves = jax.lax.platform_dependent(ok, leaves, jax.tree.leaves(old), cpu=_branch, default=_select)
    # If the sum over all leaves overflows, then the largest times their number does.
    grads_fine = jnp.isfinite(2 * len(squares) * squares)
    return jax.tree.unflatten(structure, leaves), ok | jnp.concatenate([grads_fine, weights_fine[None], state_fine])


def _select(ok: Bool[Array, ""], new: list[Array], old: list[Array]) -> list[Array]:
    return [jnp.where(ok, a, b) for a, b in zip(new, old, strict=True)]


def _branch(ok: Bool[Array, ""], new: list[Array], old: list[Array]) -> list[Array]:
    kept: list[Array] = []
    for start in range(0, len(new), LEAVES_PER_BRANCH):
        part = slice(start, start + LEAVES_PER_BRANCH)
        kept += jax.lax.cond(ok, lambda a, b: a, lambda a, b: b, new[part], old[part])
    return kept


def _stays_finite(new: Array, old: Array) -> Bool[Array, ""]:
    """Whether nothing that was finite no longer is."""
    if not jnp.issubdtype(new.dtype, jnp.inexact):
        return jnp.ones((), bool)
    return jnp.all(jnp.isfinite(new) | ~jnp.isfinite(old))
