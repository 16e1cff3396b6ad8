"""Functions along sequences: what learning rules need of functions with memory, and of the others alike."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.functions.lift import Carry, Unrolled
from triax.functions.model_types import pick_action
from triax.networks.unrolling import fold, unfold

Sequence = Callable[..., Unrolled]
"""``(params, function_state, rng, carry, resets, *inputs, is_training) -> Unrolled``; inputs ``[time, batch, ...]``."""
Weights = tuple[Any, Any]
"""``(params, function_state)``."""


def unroll(
    f: Any,
    weights: Weights,
    rng: Key,
    carry: Carry,
    resets: Bool[Array, "time batch"],
    inputs: tuple[PyTree, ...],
    *,
    is_training: bool = False,
) -> Unrolled:
    """``f`` along preprocessed inputs: ``(S,)``, or ``(S, A)`` for one output per action taken; traceable.

    ``resets[t]`` says that an episode starts at step ``t``: the carry is then a fresh one.
    """
    return f.sequence(with_action=len(inputs) == 2)(*weights, rng, carry, resets, *inputs, is_training)


def unroll_following(
    f: Any,
    weights: Weights,
    rng: Key,
    carry: Carry,
    resets: Bool[Array, "time batch"],
    inputs: tuple[PyTree, ...],
    following: tuple[PyTree, ...],
) -> PyTree:
    """The outputs of ``f`` at what followed each step, ``[time, batch, ...]``, in evaluation mode; traceable.

    At each step ``f`` remembers the episode up to it and sees the observation that really followed, also where a time
    limit cut the episode and the sequence goes on with another one. ``inputs`` and ``following`` are as in
    :func:`unroll`.
    """
    if not f.has_memory:
        return unroll(f, weights, rng, carry, resets, following).output
    carries = _carries(f, weights, rng, carry, resets, inputs)
    rows, carries = jax.tree.map(lambda leaf: fold(leaf)[None], following), fold(carries)
    no_resets = jnp.zeros((1, resets.size), bool)
    output = unroll(f, weights, rng, carries, no_resets, rows).output
    return unfold(jax.tree.map(lambda leaf: leaf[0], output), resets)


def _carries(
    f: Any, weights: Weights, rng: Key, carry: Carry, resets: Bool[Array, "time batch"], inputs: tuple[PyTree, ...]
) -> Carry:
    """What ``f`` remembers after each step, leaves ``[time, batch, ...]``."""

    def step(carry: Carry, slice_: tuple) -> tuple[Carry, Carry]:
        t, reset, now = slice_
        one = jax.tree.map(lambda leaf: leaf[None], now)
        carry = unroll(f, weights, random.fold_in(rng, t), carry, reset[None], one).carry
        return carry, carry

    return jax.lax.scan(step, carry, (jnp.arange(len(resets)), resets, inputs))[1]


def pick_along(sequence: Sequence) -> Sequence:
    """Type 1 from type 2, along a sequence."""

    def picked(params: Any, function_state: Any, rng: Key, carry: Carry, resets: Any, *args: Any) -> Unrolled:
        S, A, is_training = args
        unrolled = sequence(params, function_state, rng, carry, resets, S, is_training)
        return unrolled._replace(output=unfold(pick_action(fold(unrolled.output), fold(A)), resets))

    return picked


def map_rows(sequence: Sequence, fn: Callable[[PyTree], PyTree]) -> Sequence:
    """``fn``, which takes a batch, on the outputs of a sequence."""

    def mapped(params: Any, function_state: Any, rng: Key, carry: Carry, resets: Any, *args: Any) -> Unrolled:
        unrolled = sequence(params, function_state, rng, carry, resets, *args)
        return unrolled._replace(output=unfold(fn(fold(unrolled.output)), resets))

    return mapped
