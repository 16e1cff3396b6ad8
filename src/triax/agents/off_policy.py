"""What agents that learn from replay add to the interface, and the weights that they keep."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import jax
from flax import nnx
from jaxtyping import PyTree

from triax.agents.interface import Agent
from triax.core.keys import Key, as_raw_key
from triax.core.modules import SplitModule
from triax.core.numbers import check_count

Factory = Callable[[nnx.Rngs], nnx.Module]
"""Makes a network; it is called once for each set of weights, also under ``vmap``."""

PRIORITIES = "priorities"
"""The entry of the metrics of ``learn`` with new priorities ``[batch]`` of what was sampled; a loop takes it out."""


@dataclass(frozen=True)
class ReplayNeeds:
    """What ``learn`` wants of a replay; see ``triax.loops.device_replay.DeviceReplay``."""

    batch_size: int
    """Transitions, or sequences, of each update."""
    gamma: float = 0.99
    """Discount factor."""
    window: int = 1
    """Steps of a return, or of a sequence with its burn-in."""
    sequences: bool = False
    """Whether it learns from trajectories instead of transitions."""
    burn_in: int = 0
    """Steps of a sequence that only bring memory up to date."""
    alpha: float | None = None
    """Exponent of priorities; ``None`` samples uniformly."""
    beta: float = 0.4
    """Exponent of importance weights."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "window"):
            check_count("ReplayNeeds", name, getattr(self, name))


@runtime_checkable
class OffPolicyAgent(Agent, Protocol):
    """An agent whose ``learn`` takes a ``TransitionBatch``, or a ``Trajectory`` if it needs sequences."""

    @property
    def replay(self) -> ReplayNeeds:
        """What ``learn`` is to be fed with."""
        ...


class Weights(NamedTuple):
    """What a network computes with."""

    params: PyTree
    function_state: PyTree


def fresh_weights(factory: Factory, key: Key) -> Weights:
    """The weights of a new network; traceable."""
    return Weights(*SplitModule.of(factory(nnx.Rngs(jax.random.wrap_key_data(as_raw_key(key)))))[1:])
