"""Sequences through modules: mapped over time where nothing is remembered, scanned where something is."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool

from triax.core.sharding import num_shards, per_device
from triax.networks.step_checks import check_output
from triax.networks.types import ModuleState, StatefulModuleOutput

if TYPE_CHECKING:
    from triax.networks.module import StatefulModule


def check_sequence(module: Any, state: ModuleState, xs: Any, resets: Any) -> None:
    """Refuse a sequence whose resets are missing or not boolean, or that does not fit inputs or carry."""
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
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if jnp.shape(leaf)[:1] != resets.shape[1:]:
            name = f"the carry{jax.tree_util.keystr(path)}"
            raise ValueError(
                f"{who}.unroll: {name} of shape {list(jnp.shape(leaf))} must start with the batch of the sequence, "
                f"{resets.shape[1]}; leaves of the sequence are [time, batch, ...], here {list(resets.shape)}. "
                f"Are time and batch swapped? A fresh carry is initialize_state({resets.shape[1]})."
            )


def select(flags: Bool[Array, "*axes"], on_true: Any, on_false: Any) -> Any:
    """Leaves of ``on_true`` where the flag is set, else of ``on_false``; flags cover the leading axes."""

    def one(new: Any, old: Any) -> Array:
        if new is old:
            return old
        return jnp.where(jnp.reshape(flags, flags.shape + (1,) * (old.ndim - flags.ndim)), new, old)

    return jax.tree.map(one, on_true, on_false)


def fold(tree: Any) -> Any:
    """Leaves ``[time, batch, ...]`` as ``[time * batch, ...]``, time first.

    In a program over several devices, those of the first device come first: rows stay where they are.
    """

    def one(leaf: Any) -> Any:
        time, batch, *features = jnp.shape(leaf)
        return jnp.reshape(leaf, (time * batch, *features))  # -1 cannot be told where there are no features

    return jax.tree.map(per_device(one, (1,), 0), tree)


def unfold(tree: Any, resets: Bool[Array, "time batch"]) -> Any:
    """The inverse of :func:`fold`."""
    time, batch = resets.shape
    shards = 1 if batch % num_shards() else num_shards()  # as when they were folded

    def one(leaf: Any) -> Any:
        return jnp.reshape(leaf, (time, batch // shards, *jnp.shape(leaf)[1:]))

    return jax.tree.map(one if shards == 1 else per_device(one, (0,), 1), tree)


def map_steps(
    module: "StatefulModule", state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], extras: Any
) -> StatefulModuleOutput | None:
    """All steps of a module without carry at once; ``None`` where a call writes variables (order matters).

    Time becomes part of the batch, which gives the fastest matrix products. Only a module that puts out
    something without batch axis is taken apart, if it can be, or mapped over time instead. Batch statistics
    are no matter of order: they are written once, from all steps.
    """
    graphdef, variables = nnx.split(module)

    def step(x: Any, extra: Any, rows: int) -> tuple[StatefulModuleOutput, Any]:
        net = nnx.merge(graphdef, variables, copy=True)
        out = _checked(module, state, net(state, x, extra), rows)
        return out, nnx.state(net)

    flat = fold((xs, extras))
    out, after = step(flat[0], flat[1], resets.size)
    wrote = _changed(variables, after)
    if not all(issubclass(kind, nnx.BatchStat) for kind in wrote):
        return None
    if _has_batch_axes(step, flat, out, resets.size):
        if wrote:
            nnx.update(module, after)
        return unfold(out, resets)
    if wrote or module.has_parts:
        return None
    return jax.vmap(lambda x, e: step(x, e, resets.shape[1])[0], axis_size=resets.shape[0])(xs, extras)


def _has_batch_axes(step: Any, inputs: Any, out: Any, rows: int) -> bool:
    """Does every leaf of the output start with the batch axis? One row more must lengthen just that axis."""

    def longer(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((rows + 1, *leaf.shape[1:]), leaf.dtype)

    x, extra = jax.tree.map(longer, inputs)
    more = jax.eval_shape(lambda x, e: step(x, e, rows + 1)[0], x, extra)
    return all(
        a.shape[:1] == (rows,) and b.shape == (rows + 1, *a.shape[1:])
        for a, b in zip(jax.tree.leaves(out), jax.tree.leaves(more), strict=True)
    )


def scan_steps(
    module: "StatefulModule", state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], extras: Any
) -> StatefulModuleOutput:
    """One step after another, with a reset before each step where an episode starts."""
    try:
        return _scan(module, nnx.Param, state, (xs, resets, extras))
    except _WritesConstants:  # as nnx.WeightNorm does
        return _scan(module, nnx.Nothing(), state, (xs, resets, extras))


class _WritesConstants(Exception):  # noqa: N818 (no error)
    """A step has written a variable that was to stay the same in all of them."""


def _scan(module: "StatefulModule", constant: Any, state: ModuleState, inputs: tuple) -> StatefulModuleOutput:
    """The steps, with variables that are ``constant`` outside of what they hand on, where gradients cost less."""
    graphdef, constants, variables = nnx.split(module, constant, ...)
    wrote = False

    def step(carry: Any, inputs: Any) -> Any:
        nonlocal wrote
        state, variables = carry
        x, reset, extra = inputs
        net = nnx.merge(graphdef, constants, variables, copy=True)
        state = select(reset, net.reset_state(state), state)
        out = _checked(module, state, net(state, x, extra), reset.shape[0])
        _, constants_after, after = nnx.split(net, constant, ...)
        if _changed(constants, constants_after):
            raise _WritesConstants
        wrote = wrote or bool(_changed(variables, after))
        return (out.next_state, after), out.replace(next_state=())

    (state, variables), outs = jax.lax.scan(step, (state, variables), inputs)
    if wrote:
        nnx.update(module, variables)
    return outs.replace(next_state=state)


def _changed(before: Any, after: Any) -> set[type[nnx.Variable]]:
    """The kinds of variables that a call has written."""
    pairs = zip(nnx.to_flat_state(before), nnx.to_flat_state(after), strict=True)
    return {type(old) for (_, old), (_, new) in pairs if _is_written(old, new)}


def _is_written(before: Any, after: Any) -> bool:
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(old is not new for old, new in pairs)


def _checked(module: Any, state: Any, out: Any, batch: int) -> StatefulModuleOutput:
    """The output of a step with a loss ``[batch]``; a carry that changed its tree or its shape is refused."""
    check_output(type(module).__name__, state, out, exactly=True)
    return out.replace(regularization_loss=jnp.broadcast_to(out.regularization_loss, (batch,)))
