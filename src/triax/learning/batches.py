"""Checked batches: what a learning rule reads of a ``TransitionBatch``, in fixed dtypes, on the host."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Space
from jaxtyping import Array, Float, PyTree

from triax.learning.evaluation import Alongside
from triax.learning.trajectories import check_roles, rows_of
from triax.reward_tracing import Trajectory, TransitionBatch
from triax.spaces import batch_encoder

_COLUMNS = ("logP", "Rn", "In", "W")
_ON_HOST = {np.ndarray}


class EncodedBatch(NamedTuple):
    """A checked batch on its way into a jitted call, in few arrays, since each has its cost."""

    S: PyTree
    A: PyTree
    S_next: PyTree
    A_next: PyTree
    logP_next: Any
    extra_info: PyTree
    columns: Any
    """``logP, Rn, In, W``, four vectors."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(batch,)``, or ``(time, batch)`` for the rows of a trajectory."""
        along = self.extra_info
        return along.resets.shape if isinstance(along, Alongside) else self.columns[0].shape

    def decode(self) -> TransitionBatch:
        """The batch; traceable."""
        logP, Rn, In, W = self.columns
        return TransitionBatch.from_values(
            (self.S, self.A, logP, Rn, In, self.S_next, self.A_next, self.logP_next, W, None, self.extra_info)
        )


class BatchEncoder:
    """Turns a batch into the arrays that a jitted call takes; fields that a rule does not read become ``None``.

    Values of NumPy arrays are checked here. Arrays on the device are not looked at, which would wait for them: NaN in
    those shows in the gradients.

    Args:
        who: the rule, for messages.
        observation_space: of ``S`` and ``S_next``.
        action_space: of ``A``; ``None`` for rules that read no actions.
        next_action: whether ``A_next`` and ``logP_next`` are read.
        recorded_steps: which of the steps in ``extra_info`` are read, as offsets.
    """

    def __init__(
        self,
        who: str,
        observation_space: Space,
        action_space: Space | None,
        *,
        next_action: bool = False,
        recorded_steps: tuple[int, ...] = (),
    ) -> None:
        self._who = who
        self._next_action, self._recorded_steps = next_action, recorded_steps
        self._encode_S, self._encode_S_next, self._encode_recorded = (
            batch_encoder(observation_space, who=who, argument=f"batch.{name}")
            for name in ("S", "S_next", "extra_info['states']")
        )
        self._encode_A = self._encode_A_next = lambda A: None
        if action_space is not None:
            self._encode_A = batch_encoder(action_space, who=who, argument="batch.A")
        if action_space is not None and next_action:
            self._encode_A_next = batch_encoder(action_space, who=who, argument="batch.A_next")

    def __call__(self, batch: Any) -> EncodedBatch:
        """The checked batch.

        Raises:
            TypeError: not a transition batch, or ``extra_info`` is needed and absent.
            ValueError: NaN, values outside their space, a missing field, or leaves that disagree in length.
        """
        if isinstance(batch, Trajectory):
            check_roles(batch, who=self._who)
            batch = rows_of(batch, who=self._who)
        if not isinstance(batch, TransitionBatch):
            raise TypeError(
                f"{self._who}: transition_batch must be a TransitionBatch or a Trajectory; got {type(batch).__name__}."
            )
        encoded = EncodedBatch(
            self._encode_S(batch.S),
            self._encode_A(batch.A),
            self._encode_S_next(batch.S_next),
            *self._next(batch),
            self._recorded(batch.extra_info),
            self._columns(batch),
        )
        self._check_lengths(encoded)
        return encoded

    def _columns(self, batch: TransitionBatch) -> Any:
        """The columns as one array ``[4, batch]`` where all are on the host."""
        values = (batch.logP, batch.Rn, batch.In, batch.W)
        if {type(column) for column in values} == _ON_HOST and len({column.shape for column in values}) == 1:
            columns = np.array(values, np.float32)
            # The square is finite if all numbers are (and not huge), at a fraction of the cost of looking at each.
            if columns.ndim == 2 and math.isfinite(np.vdot(columns, columns)):
                return columns
        return tuple(self._column(name, column) for name, column in zip(_COLUMNS, values, strict=True))

    def _column(self, name: str, values: Any, *, may_be_nan: bool = False) -> Any:
        """A checked float32 vector."""
        column = values
        if not isinstance(column, jax.Array):
            try:
                column = np.asarray(column, np.float32)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{self._who}: batch.{name} must hold numbers; got {values!r}.") from error
        if column.ndim != 1:
            raise ValueError(f"{self._who}: batch.{name} must be a vector [batch]; got shape {column.shape}.")
        if isinstance(column, jax.Array):
            return column if column.dtype == np.float32 else column.astype(np.float32)
        if not may_be_nan and not np.isfinite(column).all():
            rows = np.flatnonzero(~np.isfinite(column))[:5].tolist()
            raise ValueError(
                f"{self._who}: batch.{name} must be finite; got NaN or infinity in the rows {rows}."
                " Nothing was trained."
            )
        return column

    def _next(self, batch: TransitionBatch) -> tuple[PyTree, Any]:
        """``A_next, logP_next``; NaN marks next actions that are not known."""
        if not self._next_action:
            return None, None
        if batch.A_next is None:
            raise ValueError(
                f"{self._who}: batch.A_next is missing. The tracer knows next actions only when s_next is left out"
                " of tracer.add on ordinary steps (pass it with truncated=True)."
            )
        logp_next = np.zeros(batch.batch_size, np.float32) if batch.logP_next is None else batch.logP_next
        return self._encode_A_next(batch.A_next), self._column("logP_next", logp_next, may_be_nan=True)

    def _recorded(self, info: Any) -> dict[str, Any] | Alongside | None:
        """The states at the offsets that are read, ``None`` at others, and whether each step was the last."""
        if not self._recorded_steps:
            return self._alongside(info) if isinstance(info, Alongside) else None
        if not isinstance(info, dict) or not {"states", "dones"} <= info.keys():
            raise TypeError(f"{self._who}: batch.extra_info is missing. Trace with NStep(..., record_extra_info=True).")
        furthest, recorded = max(self._recorded_steps), len(info["states"]) - 1
        if furthest > recorded:
            raise ValueError(
                f"{self._who}: the regularizer reads {furthest} steps ahead, but the batch was traced with"
                f" n={recorded}."
            )
        states = [
            self._encode_recorded(state) if offset in self._recorded_steps else None
            for offset, state in enumerate(info["states"])
        ]
        dones = [done if isinstance(done, jax.Array) else np.asarray(done, bool) for done in info["dones"]]
        return {"states": tuple(states), "dones": tuple(dones)}

    def _alongside(self, along: Alongside) -> Alongside:
        """The same with the steps of the burn-in checked."""
        if along.burn_in is None:
            return along
        S, A, resets = along.burn_in
        rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (S, A))
        encoded = self._encode_S(rows[0]), self._encode_A(rows[1])
        S, A = jax.tree.map(lambda leaf: leaf.reshape(*resets.shape, *leaf.shape[1:]), encoded)
        return along._replace(burn_in=(S, A, resets))

    def _check_lengths(self, encoded: EncodedBatch) -> None:
        size = encoded.columns[0].shape[0]
        checked = encoded._replace(extra_info=None) if isinstance(encoded.extra_info, Alongside) else encoded
        leaves = jax.tree.leaves(checked if isinstance(checked.columns, tuple) else checked[:-1])
        if {leaf.shape[:1] for leaf in leaves} != {(size,)}:
            shapes = {
                jax.tree_util.keystr(path).lstrip("."): leaf.shape
                for path, leaf in jax.tree_util.tree_leaves_with_path(encoded.decode())
            }
            raise ValueError(f"{self._who}: the fields of the batch disagree in length, axis 0: {shapes}.")
        if size == 0:
            raise ValueError(f"{self._who}: the batch is empty.")


def check_weight_clip(who: str, bounds: Any) -> tuple[float, float] | None:
    """The bounds of sample weights as floats, or ``None`` for none; ``ValueError`` unless ``low <= high``."""
    if bounds is None:
        return None
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not low <= high:
        raise ValueError(f"{who}.weight_clip must be a pair of numbers, low <= high, or None; got {bounds!r}.")
    return low, high


def clip_weights(batch: TransitionBatch, bounds: Float[Array, "2"] | None) -> TransitionBatch:
    """The batch with its sample weights within ``bounds``; traceable."""
    if bounds is None:
        return batch
    clipped = batch.copy()
    clipped.W = jnp.clip(batch.W, bounds[0], bounds[1])
    return clipped
