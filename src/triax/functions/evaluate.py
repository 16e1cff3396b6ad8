"""The one jitted call behind every shell method: preprocess, forward pass, finish."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from triax.core import random
from triax.core.keys import Draw, Key, fold_name

Preprocessor = Callable[[Any, Any], PyTree]
"""``f(rng, x) -> X``: clean to raw, batched."""
Prepare = Callable[..., tuple]
"""``(rng, *clean_inputs) -> preprocessed inputs``, each with a batch axis."""
Finish = Callable[[Key, PyTree], PyTree]
"""``(rng, output) -> result``; rows are still batched."""


def evaluator(forward: Callable, prepare: Prepare, finish: Finish) -> Callable:
    """A jitted ``(params, function_state, draw, carry, *inputs) -> (result of the first row, carry)``.

    Runs in evaluation mode and drops the new function state.
    """

    @jax.jit
    def call(params: Any, function_state: Any, draw: Draw, carry: Any, *inputs: Any) -> tuple:
        _check_single(carry)
        key = random.fold_in(*draw)
        rng_prepare, rng_forward, rng_finish = (fold_name(key, name) for name in ("prepare", "forward", "finish"))
        prepared = prepare(rng_prepare, *inputs)
        output, carry, _ = forward(params, function_state, rng_forward, carry, *prepared, False)
        result = finish(rng_finish, output)
        return jax.tree.map(lambda leaf: leaf[0], result), carry

    return call


def _check_single(carry: Any) -> None:
    sizes = {leaf.shape[:1] for leaf in jax.tree.leaves(carry)}
    if sizes - {(1,)}:
        raise ValueError(
            f"the carry of a call on one observation has the leading axis (1,); got {sorted(sizes)}."
            " f.initial_carry() gives one."
        )


def without_carry(forward: Callable, inputs: tuple[str, ...], owner: str, has_memory: bool) -> Callable:
    """The public, jitted form of ``forward``: no carry goes in or comes out."""

    def run(params: Any, function_state: Any, rng: Any, *inputs_and_mode: Any) -> tuple:
        if has_memory:
            raise TypeError(
                f"{owner}: func has memory, and a flat batch of transitions has no time axis to thread it along."
                " Pass a Trajectory to a learning rule; to evaluate yourself, use f.sequence(), or"
                " f.to_module().unroll(...), of a with_recording copy to see activations."
            )
        output, _, function_state = forward(params, function_state, rng, (), *inputs_and_mode)
        return output, function_state

    def function_of_state(params: Any, function_state: Any, rng: Any, S: Any, is_training: bool) -> tuple:
        return run(params, function_state, rng, S, is_training)

    def function_of_both(params: Any, function_state: Any, rng: Any, S: Any, A: Any, is_training: bool) -> tuple:
        return run(params, function_state, rng, S, A, is_training)

    return jax.jit(function_of_state if inputs == ("S",) else function_of_both, static_argnames="is_training")


def flatten_actions(fn: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """``fn`` on leaves ``[batch, actions, ...]``: both axes are one for ``fn``; its last argument is the output."""

    def flat_fn(*args: Any) -> PyTree:
        *others, output = args
        batch, actions = jax.tree.leaves(output)[0].shape[:2]
        flat = jax.tree.map(lambda leaf: leaf.reshape(batch * actions, *leaf.shape[2:]), output)
        return jax.tree.map(lambda leaf: leaf.reshape(batch, actions, *leaf.shape[1:]), fn(*others, flat))

    return flat_fn


def host_array(value: Any) -> np.ndarray:
    """A result as a NumPy array of its own (writable, 0-d for a scalar)."""
    return np.array(value)


def host_tree(value: PyTree) -> PyTree:
    """Every leaf as ``host_array``."""
    return jax.tree.map(host_array, value)


def with_carry(result: Any, carry: Any, given: Any, has_logp: bool = False) -> Any:
    """Callers that passed a carry get the next one back, after their result."""
    if given is None:
        return result
    return (*result, carry) if has_logp else (result, carry)
