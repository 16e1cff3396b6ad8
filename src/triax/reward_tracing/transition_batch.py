"""A batch of transitions: what tracers emit, buffers store and learning rules consume."""

import copy
from collections import namedtuple
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, PyTree

from triax.core.printing import pretty_repr
from triax.reward_tracing.inputs import as_discount, as_logp, as_number, as_row, as_truth, as_weight

FIELDS = ("S", "A", "logP", "Rn", "In", "S_next", "A_next", "logP_next", "W", "idx", "extra_info")
_BATCHED_TREES = ("S", "A", "S_next", "A_next")
_COLUMNS = ("logP", "In", "logP_next", "W", "idx")

_values_of = attrgetter(*FIELDS)
_Printable = namedtuple("TransitionBatch", FIELDS)
_KEYS = tuple(jax.tree_util.GetAttrKey(name) for name in FIELDS)


class TransitionBatch:
    """Transitions ``(S, A) -> (S_next, A_next)``, every leaf with the batch on axis 0.

    ``S``, ``A``
        Observations and actions at ``t``: members of the spaces, stacked; pytrees, dtypes kept.
    ``logP``
        Log-propensity of ``A`` under the policy that acted, in nats, float32 ``[batch]``.
    ``Rn``, ``In``
        n-step return without bootstrap, and bootstrap factor (``gamma^n``, or 0 after termination), float32
        ``[batch]``.
    ``S_next``, ``A_next``, ``logP_next``
        The same as ``S, A, logP`` at ``t + n``. ``None`` means absent. Where ``logP_next`` is NaN, the next
        action is unknown and ``A_next`` only fills the place; where ``In`` is 0, so may ``S_next``.
    ``W``
        Sample weights, float32 ``[batch]``, default ones.
    ``idx``
        Identifiers, int ``[batch]``, default ``0..batch-1``.
    ``extra_info``
        Any pytree, default ``None``.

    All fields are assignable and there are no others. Iterates over, and indexes into, the eleven values in
    this order. It is a JAX pytree; unflattening restores whatever the leaves are, unchecked.

    Raises ``TypeError`` and ``ValueError`` when a field has no batch axis or another batch size than ``Rn``.
    """

    __slots__ = FIELDS

    S: PyTree
    A: PyTree
    logP: Any
    Rn: Any
    In: Any
    S_next: PyTree
    A_next: PyTree
    logP_next: Any
    W: Any
    idx: Any
    extra_info: PyTree

    def __init__(  # noqa: PLR0913 (the eleven fields)
        self,
        S: PyTree,
        A: PyTree,
        logP: Any,
        Rn: Any,
        In: Any,
        S_next: PyTree,
        A_next: PyTree = None,
        logP_next: Any = None,
        W: Any = None,
        idx: Any = None,
        extra_info: PyTree = None,
    ):
        self.S, self.A, self.S_next, self.A_next, self.extra_info = S, A, S_next, A_next, extra_info
        self.Rn = _float_column("Rn", Rn)
        batch_size = self.Rn.shape[0]
        self.logP, self.In = _float_column("logP", logP), _float_column("In", In)
        self.logP_next = None if logP_next is None else _float_column("logP_next", logP_next)
        self.W = np.ones(batch_size, np.float32) if W is None else _float_column("W", W)
        self.idx = np.arange(batch_size, dtype=np.int32) if idx is None else _int_column("idx", idx)
        self._check_batch_size(batch_size)

    @classmethod
    def from_values(cls, values: Any) -> "TransitionBatch":
        """The batch with these eleven values, in order: nothing is checked or filled in."""
        batch = object.__new__(cls)
        (
            batch.S,
            batch.A,
            batch.logP,
            batch.Rn,
            batch.In,
            batch.S_next,
            batch.A_next,
            batch.logP_next,
            batch.W,
            batch.idx,
            batch.extra_info,
        ) = values
        return batch

    @classmethod
    def from_single(  # noqa: PLR0913 (the contract's twelve)
        cls,
        s: PyTree,
        a: PyTree,
        logp: ArrayLike,
        r: ArrayLike,
        done: ArrayLike,
        gamma: ArrayLike,
        s_next: PyTree = None,
        a_next: PyTree = None,
        logp_next: ArrayLike | None = None,
        w: ArrayLike = 1,
        idx: int | np.integer | None = None,
        extra_info: PyTree = None,
    ) -> "TransitionBatch":
        """A batch of one, of NumPy arrays of its own: ``Rn = r``, ``In = gamma * (not done)``.

        ``done`` means terminated, and ``gamma`` is ``gamma^n`` for an n-step return. What is ``None`` stays
        absent. Raises ``TypeError`` for what is no number or truth value, for ``gamma`` outside [0, 1] and
        ``w <= 0``, and ``ValueError`` for NaN or infinity.
        """
        who = "TransitionBatch.from_single"
        discount = as_discount(who, "gamma", gamma)
        numbers = {
            "logP": as_logp(who, "logp", logp),
            "Rn": as_number(who, "r", r),
            "In": 0.0 if as_truth(who, "done", done) else discount,
            "logP_next": None if logp_next is None else as_logp(who, "logp_next", logp_next),
            "W": as_weight(who, "w", w),
        }
        trees = {"S": s, "A": a, "S_next": s_next, "A_next": a_next, "extra_info": extra_info}
        return cls(
            **{name: None if x is None else as_row(who, name, x) for name, x in trees.items()},
            **{name: None if x is None else np.array([x], np.float32) for name, x in numbers.items()},
            idx=None if idx is None else np.array([idx]),
        )

    @property
    def batch_size(self) -> int:
        """Number of transitions, the length of ``Rn``."""
        return self.Rn.shape[0]

    def to_singles(self) -> Iterator["TransitionBatch"]:
        """The transitions as batches of one, first to last; each owns its arrays."""
        for index in range(self.batch_size):
            yield jax.tree.map(lambda leaf, i=index: _row_copy(leaf, i), self)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of name and value, in order."""
        return zip(FIELDS, _values_of(self), strict=True)

    def copy(self, deep: bool = False) -> "TransitionBatch":
        """A batch with the same values or, when ``deep``, with copies of them."""
        return copy.deepcopy(self) if deep else self.from_values(_values_of(self))

    def _asdict(self) -> dict[str, Any]:
        return dict(self.items())

    def _check_batch_size(self, batch_size: int) -> None:
        for name in _COLUMNS:
            column = getattr(self, name)
            if column is not None and column.shape[0] != batch_size:
                raise ValueError(
                    f"TransitionBatch: {name} must have the length of Rn, {batch_size}; got {column.shape[0]}"
                )
        trees = {name: getattr(self, name) for name in _BATCHED_TREES}
        for path, leaf in jax.tree_util.tree_leaves_with_path(trees):
            shape = getattr(leaf, "shape", ())
            if not shape or shape[0] != batch_size:
                name = jax.tree_util.keystr(path, simple=True, separator=".")
                raise ValueError(
                    f"TransitionBatch: {name} must be an array with the batch, {batch_size}, on axis 0;"
                    f" got shape {tuple(shape)}. Is it a single observation or action? Try from_single."
                )

    def __iter__(self) -> Iterator[Any]:
        return iter(_values_of(self))

    def __getitem__(self, index: int | slice) -> Any:
        return _values_of(self)[index]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return jax.tree.structure(self) == jax.tree.structure(other) and all(
            map(_is_close, jax.tree.leaves(self), jax.tree.leaves(other))
        )

    def __repr__(self) -> str:
        return pretty_repr(_Printable(*self))


jax.tree_util.register_pytree_with_keys(
    TransitionBatch,
    flatten_with_keys=lambda batch: (tuple(zip(_KEYS, _values_of(batch), strict=True)), None),
    unflatten_func=lambda _, values: TransitionBatch.from_values(values),
    flatten_func=lambda batch: (_values_of(batch), None),
)


def _float_column(name: str, values: Any) -> Any:
    """float32 with a batch axis: a JAX array (traced or not) stays one, all else becomes NumPy."""
    column = _column(name, values)
    # ml_dtypes' bfloat16 and its like are floating, but of NumPy's kind "V".
    if column.dtype.kind not in "biuf" and not jnp.issubdtype(column.dtype, np.floating):
        raise TypeError(f"TransitionBatch: {name} must hold numbers; got dtype {column.dtype}")
    return column if column.dtype == np.float32 else column.astype(np.float32)


def _int_column(name: str, values: Any) -> Any:
    column = _column(name, values)
    if column.dtype.kind not in "iu":
        raise TypeError(f"TransitionBatch: {name} must hold ints; got dtype {column.dtype}")
    return column


def _column(name: str, values: Any) -> Any:
    column = values if isinstance(values, jax.Array) else np.asarray(values)
    if column.ndim == 0:
        raise ValueError(f"TransitionBatch: {name} must have a batch axis; got one value. Try from_single.")
    return column


def _row_copy(leaf: Any, index: int) -> Any:
    row = leaf[index : index + 1]
    return row if isinstance(leaf, jax.Array) else np.array(row)


def _is_close(left: Any, right: Any) -> bool:
    left, right = np.asarray(left), np.asarray(right)
    if left.shape != right.shape:
        return False
    if any(jnp.issubdtype(leaf.dtype, np.inexact) for leaf in (left, right)):
        return np.allclose(left, right, equal_nan=True)
    return bool(np.array_equal(left, right))
