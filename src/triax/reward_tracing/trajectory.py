"""Stretches of experience in the order of time, for on-policy learning and for recurrent replay."""

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PyTree


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Trajectory:
    """``time`` steps of ``batch`` parallel streams: leaves are ``[time, batch, ...]``, except in ``carry``.

    A stream may hold several episodes; where ``terminated | truncated`` is true one ends, and the next row
    starts another.

    ``S``, ``A``, ``logP``, ``R``
        Observation, action, its log-propensity in nats, and the reward that it gave.
    ``terminated``, ``truncated``
        The environment ended the episode (no bootstrap) | a time limit cut it (bootstrap from ``S_next``).
        Both are kept apart: advantages use the first, resets of memory either.
    ``S_next``
        What followed, of the same episode: after its last step the final observation, never that of a reset.
    ``carry``
        What the network remembers before the first step; leaves ``[batch, ...]``, ``()`` without memory.
    ``W``
        Sample weights, or ``None``.
    """

    S: PyTree
    A: PyTree
    logP: Any
    R: Any
    terminated: Any
    truncated: Any
    S_next: PyTree
    carry: PyTree = ()
    W: Any = None

    @property
    def num_steps(self) -> int:
        """Length of the time axis."""
        return self.R.shape[0]

    @property
    def batch_size(self) -> int:
        """Number of parallel streams."""
        return self.R.shape[1]

    @property
    def done(self) -> Any:
        """Where an episode ends, for whichever reason: ``[time, batch]``."""
        return self.terminated | self.truncated
