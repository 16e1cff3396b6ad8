"""Sequences through modules: mapped over time where nothing is remembered, scanned where something is."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool

from triax.networks.types import ModuleState, StatefulModuleOutput

if TYPE_CHECKING:
    from triax.networks.module import StatefulModule


def check_resets(module: Any, xs: Any, resets: Any) -> None:
    """Refuse a sequence whose resets are missing, not boolean or not of the shape of the inputs."""
    who = type(module).__name__
    if getattr(resets, "dtype", None) != jnp.bool_ or jnp.ndim(resets) != 2:
        got = repr(resets) if resets is None else f"{jnp.result_type(resets)}{list(jnp.shape(resets))}"
        raise TypeError(
            f"{who}.unroll: resets must be a boolean array [time, batch], true where an episode starts; "
            f"got {got}. "
            "Pass jnp.zeros((time, batch), bool) if no episode starts in this sequence."
        )
    for path, leaf in jax.tree_util.tree_leaves_with_path(xs):
        if jnp.shape(leaf)[:2] != resets.shape:
            name = jax.tree_util.keystr(path) or "the input"
            raise ValueError(
                f"{who}.unroll: {name} must start with [time, batch] = {list(resets.shape)}, as resets; "
                f"got shape {list(jnp.shape(leaf))}."
            )


def select(flags: Bool[Array, "*axes"], on_true: Any, on_false: Any) -> Any:
    """Leaves of ``on_true`` where the flag is set, else of ``on_false``; flags cover the leading axes."""

    def one(new: Any, old: Any) -> Array:
        if new is old:
            return old
        return jnp.where(jnp.reshape(flags, flags.shape + (1,) * (old.ndim - flags.ndim)), new, old)

    return jax.tree.map(one, on_true, on_false)


def fold(tree: Any) -> Any:
    """Leaves ``[time, batch, ...]`` as ``[time * batch, ...]``."""
    return jax.tree.map(lambda leaf: jnp.reshape(leaf, (-1, *jnp.shape(leaf)[2:])), tree)


def unfold(tree: Any, resets: Bool[Array, "time batch"]) -> Any:
    """The inverse of :func:`fold`."""
    return jax.tree.map(lambda leaf: jnp.reshape(leaf, (*resets.shape, *jnp.shape(leaf)[1:])), tree)


def map_steps(
    module: "StatefulModule", state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], extras: Any
) -> StatefulModuleOutput | None:
    """All steps of a module without carry at once; ``None`` where a call writes variables (order matters).

    Time becomes part of the batch, which gives the fastest matrix products. Only a module that puts out
    something without batch axis is taken apart, if it can be, or mapped over time instead.
    """
    graphdef, variables = nnx.split(module)
    wrote = False

    def step(x: Any, extra: Any, rows: int) -> StatefulModuleOutput:
        nonlocal wrote
        net = nnx.merge(graphdef, variables, copy=True)
        out = _checked(module, state, net(state, x, extra), rows)
        wrote = wrote or _changed(variables, nnx.state(net))
        return out

    flat = fold((xs, extras))
    out = step(flat[0], flat[1], resets.size)
    if wrote:
        return None
    if _has_batch_axes(step, flat, out, resets.size):
        return unfold(out, resets)
    if module.has_parts:
        return None
    return jax.vmap(lambda x, e: step(x, e, resets.shape[1]), axis_size=resets.shape[0])(xs, extras)


def _has_batch_axes(step: Any, inputs: Any, out: Any, rows: int) -> bool:
    """Does every leaf of the output start with the batch axis? One row more must lengthen just that axis."""

    def longer(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((rows + 1, *leaf.shape[1:]), leaf.dtype)

    x, extra = jax.tree.map(longer, inputs)
    more = jax.eval_shape(lambda x, e: step(x, e, rows + 1), x, extra)
    return all(
        a.shape[:1] == (rows,) and b.shape == (rows + 1, *a.shape[1:])
        for a, b in zip(jax.tree.leaves(out), jax.tree.leaves(more), strict=True)
    )


def scan_steps(
    module: "StatefulModule", state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], extras: Any
) -> StatefulModuleOutput:
    """One step after another, with a reset before each step where an episode starts."""
    graphdef, params, variables = nnx.split(module, nnx.Param, ...)
    wrote = False

    def step(carry: Any, inputs: Any) -> Any:
        nonlocal wrote
        state, variables = carry
        x, reset, extra = inputs
        net = nnx.merge(graphdef, params, variables, copy=True)
        state = select(reset, net.reset_state(state), state)
        out = _checked(module, state, net(state, x, extra), reset.shape[0])
        after = nnx.split(net, nnx.Param, ...)[2]
        wrote = wrote or _changed(variables, after)
        return (out.next_state, after), out.replace(next_state=())

    (state, variables), outs = jax.lax.scan(step, (state, variables), (xs, resets, extras))
    if wrote:
        nnx.update(module, variables)
    return outs.replace(next_state=state)


def _changed(before: Any, after: Any) -> bool:
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(old is not new for old, new in pairs)


def _checked(module: Any, state: Any, out: Any, batch: int) -> StatefulModuleOutput:
    """The output of a step with a loss ``[batch]``; a carry that changed its shape is refused."""
    who = type(module).__name__
    if not isinstance(out, StatefulModuleOutput):
        raise TypeError(f"{who}: a call must return a StatefulModuleOutput; got {type(out).__name__}.")
    before, after = jax.eval_shape(lambda: state), jax.eval_shape(lambda: out.next_state)
    same = jax.tree.structure(before) == jax.tree.structure(after) and all(
        (a.shape, a.dtype) == (b.shape, b.dtype)
        for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    )
    if not same:
        raise ValueError(
            f"{who}: next_state must have the tree, shapes and dtypes of the state that came in, {before}; got {after}."
        )
    return out.replace(regularization_loss=jnp.broadcast_to(out.regularization_loss, (batch,)))
