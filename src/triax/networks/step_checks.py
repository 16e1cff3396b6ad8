"""What a step of a module must give: checked while it is traced, so that compiled programs pay nothing."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from triax.core.numbers import check_count
from triax.core.tree_differences import describe_difference, describe_structure
from triax.networks.types import ModuleState, StatefulModuleOutput


def with_checked_output(call: Callable[..., Any]) -> Callable[..., Any]:
    """The ``__call__`` of a module, with :func:`check_output` behind it."""
    _, name, *_ = [*inspect.signature(call).parameters, ""]  # of the state, should it come as a keyword

    @functools.wraps(call)
    def step(self: Any, *args: Any, **kwargs: Any) -> StatefulModuleOutput:
        out = call(self, *args, **kwargs)
        state = args[0] if args else kwargs.get(name, ())
        check_output(type(self).__name__, state, out)
        return out

    return step


def with_checked_batch_size(initialize_state: Callable[..., Any]) -> Callable[..., Any]:
    """The ``initialize_state`` of a module, for a batch size that is an int."""

    @functools.wraps(initialize_state)
    def checked(self: Any, batch_size: Any) -> ModuleState:
        return initialize_state(self, check_count(type(self).__name__, "batch_size", batch_size, low=0))

    return checked


def with_checked_reset(reset_state: Callable[..., Any]) -> Callable[..., Any]:
    """The ``reset_state`` of a module, with its result refused (``ValueError``) where it is not like what came in."""

    @functools.wraps(reset_state)
    def checked(self: Any, prev_state: ModuleState) -> ModuleState:
        who = f"{type(self).__name__}.reset_state"
        try:
            fresh = reset_state(self, prev_state)
        except Exception as error:
            error.add_note(f"In {who}, of the carry {describe_structure(prev_state)}.")
            raise
        _check_carry(who, prev_state, fresh, exactly=False, what="what it gives")
        return fresh

    return checked


def check_output(who: str, state: ModuleState, out: Any, *, exactly: bool = False) -> None:
    """Refuse what is no output of a step (``TypeError``), a carry that is not as it came in, a loss that is not one
    number a row of it (``ValueError``).

    A tuple may come back as a list or a named tuple, unless ``exactly``, as ``scan`` needs it.
    """
    if not isinstance(out, StatefulModuleOutput):
        raise TypeError(
            f"{who}: a call must return a StatefulModuleOutput; got {type(out).__name__}. "
            "Return StatefulModuleOutput(next_state, output, regularization_loss, metrics)."
        )
    _check_carry(who, state, out.next_state, exactly=exactly)
    loss = np.shape(out.regularization_loss)
    for leaf in jax.tree.leaves(out.next_state):
        if np.shape(leaf)[: len(loss)] != loss:
            raise ValueError(
                f"{who}: regularization_loss must be a number or [batch], as the carry begins with it; got the shape "
                f"{list(loss)}, and a leaf of the carry has {list(np.shape(leaf))}."
            )


def _check_carry(
    who: str, state: ModuleState, next_state: ModuleState, *, exactly: bool, what: str = "next_state"
) -> None:
    before, after = _abstract(state), _abstract(next_state)
    same_tree = jax.tree.structure(before) == jax.tree.structure(after)
    if same_tree and all(map(_alike, jax.tree.leaves(before), jax.tree.leaves(after))):
        return
    if not exactly:
        before, after = _plain(before), _plain(after)
        if not jax.tree.leaves((before, after)):
            return
    difference = describe_difference(before, after, what)
    if difference is not None:
        raise ValueError(
            f"{who}: {what} must have the tree, shapes and dtypes of the state that came in. {difference}\n"
            "Did the state come from initialize_state(batch), with the batch of the input?"
        )


def _abstract(tree: Any) -> Any:
    return jax.tree.map(jax.typeof, tree)


def _alike(a: Any, b: Any) -> bool:
    return (a.shape, a.dtype) == (b.shape, b.dtype)


def _plain(tree: Any) -> Any:
    """With lists for all sequences, and dicts for all mappings."""
    if isinstance(tree, Mapping):
        return {key: _plain(value) for key, value in tree.items()}
    return [_plain(value) for value in tree] if isinstance(tree, list | tuple) else tree
