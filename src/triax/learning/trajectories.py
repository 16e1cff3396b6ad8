"""Trajectories as rows of transitions that know what they have in common."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from triax.core.numbers import check_count
from triax.learning.evaluation import ROLES, Alongside
from triax.networks.unrolling import fold
from triax.reward_tracing import Trajectory, TransitionBatch


def rows_of(trajectory: Trajectory, *, who: str) -> TransitionBatch:
    """One-step transitions ``[time * batch]`` of the steps after the burn-in, time first.

    Next actions are those of the next step; the last step of an episode or of the sequence has none, which
    ``logP_next = NaN`` marks.

    Raises:
        ValueError: leaves do not start with ``[time, batch]``, or the burn-in leaves nothing to learn from.
    """
    _check(trajectory, who)
    first, np_ = trajectory.burn_in, _numpy_of(trajectory)
    done = np_.asarray(trajectory.done, bool)
    starts = np_.zeros_like(done[:1]) if trajectory.is_start is None else np_.asarray(trajectory.is_start, bool)[None]
    resets = np_.concatenate([starts, done[:-1]])
    later = jax.tree.map(lambda leaf: leaf[first:], (trajectory.S, trajectory.A, trajectory.S_next))
    S, A, S_next = map(_fold, later)
    R, logP = (np_.asarray(x, np.float32)[first:] for x in (trajectory.R, trajectory.logP))
    In = trajectory.gamma * ~np_.asarray(trajectory.terminated, bool)[first:]
    W = np_.ones_like(R) if trajectory.W is None else np_.asarray(trajectory.W, np.float32)[first:]
    unknown = np_.concatenate([done[first:-1], np_.ones_like(done[:1])])
    logP_next = np_.where(unknown, np.nan, np_.concatenate([logP[1:], logP[-1:]]))
    A_next = jax.tree.map(lambda leaf: np_.concatenate([leaf[first + 1 :], leaf[-1:]]), trajectory.A)
    burn_in = None
    if first:
        burn_in = jax.tree.map(lambda leaf: leaf[:first], (trajectory.S, trajectory.A, resets))
    along = Alongside(trajectory.carry, dict(trajectory.carries), resets[first:], burn_in)
    logP, R, In, A_next, logP_next, W = map(_fold, (logP, R, In, A_next, logP_next, W))
    return TransitionBatch.from_values((S, A, logP, R, In, S_next, A_next, logP_next, W, None, along))


def check_roles(trajectory: Trajectory, *, who: str) -> None:
    """``ValueError`` for carries of a role that no rule has; one that only other rules have may stay."""
    unknown = sorted(set(trajectory.carries) - set(ROLES))
    if unknown:
        raise ValueError(
            f"{who}: trajectory.carries has the roles {unknown}, which no rule has; the roles are {list(ROLES)}:"
            " 'trained' is the function in training, 'q' the critics of a policy objective, 'reg' the function of a"
            " regularizer, the others are targets. Nothing was trained."
        )


def _fold(tree: PyTree) -> PyTree:
    """As networks fold sequences; on the host arrays stay those of NumPy."""

    def one(leaf: Any) -> Any:
        return fold(leaf) if isinstance(leaf, jax.Array) else leaf.reshape(-1, *leaf.shape[2:])

    return jax.tree.map(one, tree)


def _numpy_of(trajectory: Trajectory) -> Any:
    """The module that computes where the arrays are: nothing is fetched, and nothing is sent twice."""
    return jnp if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(trajectory.R)) else np


def _check(trajectory: Trajectory, who: str) -> None:
    shape = np.shape(trajectory.R)
    if len(shape) != 2:
        raise ValueError(f"{who}: trajectory.R must be [time, batch]; got shape {shape}.")
    if not 0 <= trajectory.burn_in < shape[0]:
        raise ValueError(
            f"{who}: trajectory.burn_in must leave steps to learn from: got {trajectory.burn_in} of {shape[0]} steps."
        )
    check_count(who, "trajectory.burn_in", trajectory.burn_in, low=0)
    for name in ("S", "A", "logP", "terminated", "truncated", "S_next", "W"):
        for path, leaf in jax.tree_util.tree_leaves_with_path(getattr(trajectory, name)):
            if np.shape(leaf)[:2] != shape:
                raise ValueError(
                    f"{who}: trajectory.{name}{jax.tree_util.keystr(path)} must start with [time, batch] = {shape};"
                    f" got shape {np.shape(leaf)}."
                )
