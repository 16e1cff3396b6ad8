"""Stretches of experience in the order of time, for on-policy learning and for recurrent replay."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PyTree

from triax.core.printing import pretty_repr


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
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
        Sample weights ``[time, batch]``, or ``None`` for ones.
    ``carries``
        Carries of functions that remember something else than ``carry``, by their role in a rule: ``"trained"``,
        ``"v_targ"``, ``"q_targ"``, ``"pi_targ"``, ``"q"`` (critics of a policy objective), ``"reg"``. Rules refuse
        other names.
    ``is_start``
        ``[batch]``, whether an episode starts at the first step, so that its ``carry`` is replaced; or ``None`` for
        no.
    ``gamma``
        The discount factor of learning rules.
    ``burn_in``
        So many steps at the start only bring memories up to date; rules learn from the rest (R2D2, Kapturowski et
        al. 2019).
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
    carries: Mapping[str, PyTree] = dataclasses.field(default_factory=dict)
    is_start: Any = None
    gamma: float = dataclasses.field(default=0.99, metadata={"static": True})
    burn_in: int = dataclasses.field(default=0, metadata={"static": True})

    def __repr__(self) -> str:
        return pretty_repr(self)

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
