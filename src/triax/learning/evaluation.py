"""Functions at the states of a batch, whether its rows stand alone or follow each other in a trajectory."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.core.tree_differences import describe_structure
from triax.functions.lift import Carry, Unrolled
from triax.functions.sequences import unroll, unroll_following
from triax.networks.unrolling import fold, unfold
from triax.reward_tracing import TransitionBatch

Weights = tuple[Any, Any]
"""``(params, function_state)``."""
Place = Literal["S", "S_next"]

TRAINED = "trained"
"""The role of the function in training: it runs in training mode, all others in evaluation mode."""
ROLES = (TRAINED, "v_targ", "q_targ", "pi_targ", "q", "reg")
"""The roles in all rules, which ``Trajectory.carries`` may name; agents name those of their own networks."""


class Alongside(NamedTuple):
    """What the rows ``[time * batch]`` of a trajectory have in common; it travels as ``extra_info`` of a batch."""

    carry: Carry
    carries: dict[str, Carry]
    resets: Bool[Array, "time batch"]
    """Where an episode starts, for the rows."""
    burn_in: tuple[PyTree, PyTree, Bool[Array, "steps batch"]] | None
    """``S, A, resets`` of the steps before the rows, which only bring memories up to date."""


class Evaluated(NamedTuple):
    """What a function gives at the rows of a batch."""

    output: PyTree
    function_state: PyTree
    loss: Float[Array, ""]
    """The mean regularization of a ``StatefulModule``, 0 for other functions."""


def evaluate_at(
    batch: TransitionBatch,
    f: Any,
    weights: Weights,
    rng: Key,
    *,
    name: str,
    at: Place = "S",
    actions: PyTree = None,
    is_training: bool | None = None,
) -> Evaluated:
    """``f`` at the clean states ``batch.S`` or ``batch.S_next``; traceable.

    Args:
        batch: clean, as traced.
        f: a function of the state, or of state and action.
        weights: of ``f``.
        rng: a key.
        name: the role of ``f``, which picks its carry in a trajectory.
        at: where.
        actions: raw actions, one a row; without them a function of state and action answers for all actions.
        is_training: the mode of ``f``; by default that of its role.

    Raises:
        TypeError: ``f`` has memory, and the batch is no trajectory, or has no carry that fits.
    """
    is_training = name == TRAINED if is_training is None else is_training
    along = batch.extra_info if isinstance(batch.extra_info, Alongside) else None
    check_memory(batch, f, name)
    rng_S, rng_f = random.split(rng)
    rows = _inputs(f, rng_S, getattr(batch, at), actions)
    resets = jnp.zeros((1, batch.Rn.shape[0]), bool) if along is None else along.resets
    inputs = unfold(rows, resets)
    if along is None or not f.has_memory:
        return _rows(unroll(f, weights, rng_f, (), resets, inputs, is_training=is_training))
    carry = _memory_at_first_row(along, f, weights, rng, name, is_training=is_training)
    if at == "S":
        return _rows(unroll(f, weights, rng_f, carry, resets, inputs, is_training=is_training))
    taken = unfold(_inputs(f, rng_S, batch.S, None if actions is None else _taken(f, rng_S, batch.A)), resets)
    output = unroll_following(f, weights, rng_f, carry, resets, taken, inputs)
    return Evaluated(fold(output), weights[1], jnp.zeros(()))


def check_memory(batch: TransitionBatch, f: Any, name: str) -> None:
    """``TypeError`` where ``f``, in the role ``name``, has memory and the batch has no carry that fits."""
    if not f.has_memory:
        return
    who = f"the {type(f).__name__} in training" if name == TRAINED else f"{name}, a {type(f).__name__},"
    along = batch.extra_info if isinstance(batch.extra_info, Alongside) else None
    if along is None:
        raise TypeError(
            f"{who} has memory, and a flat batch of transitions has no time axis to thread it along. Pass a Trajectory."
        )
    carry = along.carries.get(name, along.carry)
    if jax.tree.structure(carry) == f.carry_structure:
        return
    size, roles = along.resets.shape[1], sorted(along.carries)
    found = f"its carry is {describe_structure(carry)}" if jax.tree.leaves(carry) else "it has no carry"
    raise TypeError(
        f"{who} has memory, so the trajectory needs its carry, {describe_structure(f.carry_structure)}; {found}. Try"
        f" dataclasses.replace(trajectory, carry=f.initial_carry({size})), or carries={{{name!r}: ...}} where functions"
        f" differ (its keys are roles; got {roles})."
    )


def unfolded(rows: Array, batch: TransitionBatch) -> Array:
    """Rows of a trajectory as ``[time, batch]``; those of a flat batch as they are."""
    along = batch.extra_info
    return unfold(rows, along.resets) if isinstance(along, Alongside) else rows


def _inputs(f: Any, rng: Key, S: PyTree, actions: PyTree) -> tuple[PyTree, ...]:
    S = f.observation_preprocessor(rng, S)
    return (S,) if actions is None else (S, actions)


def _taken(f: Any, rng: Key, A: PyTree) -> PyTree:
    return f.action_preprocessor(rng, A)


def _rows(unrolled: Unrolled) -> Evaluated:
    loss = jnp.mean(jnp.asarray(unrolled.loss, jnp.float32))
    return Evaluated(fold(unrolled.output), unrolled.function_state, loss)


def _memory_at_first_row(
    along: Alongside, f: Any, weights: Weights, rng: Key, name: str, *, is_training: bool
) -> Carry:
    """The stored carry, brought up to date by the steps of the burn-in; no gradient flows into it."""
    carry = along.carries.get(name, along.carry)
    if along.burn_in is not None:
        S, A, resets = along.burn_in
        takes_action = f.takes_action_as_input
        inputs = _inputs(f, rng, fold(S), _taken(f, rng, fold(A)) if takes_action else None)
        carry = unroll(f, weights, rng, carry, resets, unfold(inputs, resets), is_training=is_training).carry
    return jax.lax.stop_gradient(carry)
