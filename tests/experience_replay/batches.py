"""Batches whose every leaf tells which transition it belongs to."""

import jax
import numpy as np

from triax.reward_tracing import TransitionBatch


def numbered(start, size, **changes):
    """Transitions ``start..start+size-1``: a plain structure, scalars and small observations."""
    k = np.arange(start, start + size)
    fields = {
        "S": np.stack([k, k + 0.5], axis=1).astype(np.float32),
        "A": k % 7,
        "logP": -k / 10,
        "Rn": k * 1.0,
        "In": np.full(size, 0.9),
        "S_next": np.stack([k + 1, k + 1.5], axis=1).astype(np.float32),
        "W": k + 1.0,
    }
    return TransitionBatch(**(fields | changes))


def nested(start, size):
    """The same with pytrees of several dtypes, next actions and extra information."""
    k = np.arange(start, start + size)
    frames = tuple(np.broadcast_to(((k + j) % 256)[:, None, None], (size, 2, 3)).astype(np.uint8) for j in range(3))
    return numbered(
        start,
        size,
        S={"frames": frames, "on": k % 2 == 0},
        S_next={"frames": frames, "on": k % 2 == 1},
        A_next=k % 5,
        logP_next=np.where(k % 3 == 0, np.nan, -k),
        extra_info={"states": (k * 2, k * 3.0)},
    )


def with_idx(batch, idx):
    batch = batch.copy()
    batch.idx = np.asarray(idx)
    return batch


def joined(batches):
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *batches)
