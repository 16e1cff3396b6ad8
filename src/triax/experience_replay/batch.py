"""What a replay buffer asks of the batches that it stores."""

from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import PyTree


@runtime_checkable
class ReplayableBatch(Protocol):
    """A pytree whose leaves have the batch on axis 0, such as ``triax.reward_tracing.TransitionBatch``.

    ``idx`` identifies its rows and ``W`` weighs them; sampled batches have both assigned by the buffer.
    """

    idx: Any
    W: Any

    @property
    def batch_size(self) -> int:
        """Number of rows."""
        ...


def check_replayable(who: str, batch: Any) -> None:
    """``TypeError`` unless ``batch`` has what :class:`ReplayableBatch` names."""
    missing = [name for name in ("batch_size", "idx", "W") if not hasattr(batch, name)]
    if missing:
        raise TypeError(
            f"{who}: transition_batch must have batch_size, idx and W, like TransitionBatch;"
            f" got {type(batch).__name__} without {', '.join(missing)}"
        )


def named_arrays(who: str, batch: PyTree, batch_size: int) -> dict[str, np.ndarray]:
    """The leaves as NumPy arrays, by name and in order: ``{"S/0": ..., "S/1": ..., "A": ...}``.

    ``TypeError`` names a leaf that is no array, ``ValueError`` one without the batch on axis 0.
    """
    arrays = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(batch):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        array = np.asarray(leaf)
        if array.dtype.hasobject:
            raise TypeError(f"{who}: {name} must be an array; got {type(leaf).__name__}")
        if array.ndim == 0 or len(array) != batch_size:
            raise ValueError(f"{who}: {name} must have the batch, {batch_size}, on axis 0; got shape {array.shape}")
        arrays[name] = array
    return arrays
