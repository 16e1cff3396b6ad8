"""Checked batches: what a learning rule reads of a ``TransitionBatch``, in fixed dtypes, on the host."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Space
from jaxtyping import Array, Float, PyTree

from triax.reward_tracing import TransitionBatch
from triax.reward_tracing.transition_batch import FIELDS
from triax.spaces import batch_encoder


class BatchEncoder:
    """Turns a batch into the arrays that a traced loss takes; fields that a rule does not read become ``None``.

    Args:
        who: the rule, for messages.
        observation_space: of ``S`` and ``S_next``.
        action_space: of ``A``; ``None`` for rules that read no actions.
        next_action: whether ``A_next`` and ``logP_next`` are read.
        extra_info: whether ``extra_info`` is read.
    """

    def __init__(
        self,
        who: str,
        observation_space: Space,
        action_space: Space | None,
        *,
        next_action: bool = False,
        extra_info: bool = False,
    ) -> None:
        self._who = who
        self._next_action, self._extra_info = next_action, extra_info
        self._observations = {
            name: batch_encoder(observation_space, who=who, argument=f"batch.{name}") for name in ("S", "S_next")
        }
        self._actions = {}
        if action_space is not None:
            self._actions = {
                name: batch_encoder(action_space, who=who, argument=f"batch.{name}") for name in ("A", "A_next")
            }

    def __call__(self, batch: Any) -> TransitionBatch:
        """The checked batch.

        Raises:
            TypeError: not a transition batch.
            ValueError: NaN, values outside their space, a missing field, or leaves that disagree in length.
        """
        if not isinstance(batch, TransitionBatch):
            raise TypeError(f"{self._who}: transition_batch must be a TransitionBatch; got {type(batch).__name__}.")
        fields: dict[str, Any] = {name: self._number(batch, name) for name in ("logP", "Rn", "In", "W")}
        for name, encode in self._observations.items():
            fields[name] = encode(getattr(batch, name))
        if self._actions:
            fields["A"] = self._actions["A"](batch.A)
        if self._next_action:
            fields |= self._next(batch)
        if self._extra_info:
            fields["extra_info"] = self._extra(batch)
        self._check_lengths(fields)
        return TransitionBatch.from_values([fields.get(name) for name in FIELDS])

    def _number(self, batch: TransitionBatch, name: str) -> Any:
        """A checked float column."""
        column = getattr(batch, name)
        if isinstance(column, jax.Array):
            return column.astype(jnp.float32)
        column = np.asarray(column, np.float32)
        if column.ndim != 1:
            raise ValueError(f"{self._who}: batch.{name} must be a vector [batch]; got shape {column.shape}.")
        if not np.isfinite(column).all():
            bad = np.flatnonzero(~np.isfinite(column))[:5].tolist()
            raise ValueError(
                f"{self._who}: batch.{name} must be finite; got NaN or infinity in the rows {bad}. Nothing was trained."
            )
        return column

    def _next(self, batch: TransitionBatch) -> dict[str, Any]:
        if batch.A_next is None or batch.logP_next is None:
            raise ValueError(
                f"{self._who}: batch.A_next is missing. The tracer knows next actions only when s_next is left out"
                " of tracer.add on ordinary steps (pass it with truncated=True)."
            )
        logp = batch.logP_next
        logp = logp if isinstance(logp, jax.Array) else np.asarray(logp, np.float32)
        return {"A_next": self._actions["A_next"](batch.A_next), "logP_next": logp}

    def _extra(self, batch: TransitionBatch) -> PyTree:
        if not isinstance(batch.extra_info, dict):
            raise TypeError(f"{self._who}: batch.extra_info is missing. Trace with NStep(..., record_extra_info=True).")
        return {name: batch.extra_info[name] for name in ("states", "dones")}

    def _check_lengths(self, fields: dict[str, Any]) -> None:
        lengths = {
            name: leaf.shape[0] for name, tree in fields.items() if name != "extra_info" for leaf in _leaves(tree)
        }
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{self._who}: the fields of the batch disagree in length: {lengths}.")


def _leaves(tree: PyTree) -> list:
    return [tree] if isinstance(tree, np.ndarray | jax.Array) else jax.tree.leaves(tree)


def clip_weights(W: Float[Array, " batch"], bounds: tuple[float, float] | None) -> Float[Array, " batch"]:
    """Sample weights within ``bounds``; ``None`` leaves them as they are."""
    return W if bounds is None else jnp.clip(W, *bounds)
