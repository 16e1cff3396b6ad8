"""What agents that learn from replay add to the interface, and what they have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PyTree

from triax.agents.interface import Agent
from triax.core.keys import Key, as_typed_key
from triax.core.modules import SplitModule
from triax.core.numbers import check_count, check_number
from triax.functions.interpolation import interpolate

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
    next_actions: bool = False
    """Whether transitions come with the action that followed; sequences always do."""

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
    return Weights(*SplitModule.of(factory(nnx.Rngs(as_typed_key(key))))[1:])


def moved_target(target: Weights, online: Weights, updates: Int[Array, ""], tau: Any, every: int) -> Weights:
    """The target network, a part ``tau`` nearer to the online one after each ``every`` updates."""
    tau = tau if every == 1 else jnp.where(updates % every, 0.0, tau)
    return Weights(*interpolate(tuple(target), tuple(online), tau))


# ------------------------------------------------------------------ replay


def check_replay_options(config: Any) -> None:
    """Refuse what no replay can give, in the fields that the configs of all off-policy agents share.

    Raises:
        TypeError: a number is none.
        ValueError: a number is out of range.
    """
    who = type(config).__name__
    for name in ("n_step", "batch_size", "sequence_length"):
        check_count(who, name, getattr(config, name))
    check_number(who, "gamma", config.gamma, low=0, high=1)
    check_number(who, "beta", config.beta, low=0)
    if config.alpha is not None:
        check_number(who, "alpha", config.alpha, positive=True)
    if not 0 <= config.burn_in < config.sequence_length:
        raise ValueError(
            f"{who}: burn_in must leave steps of sequence_length={config.sequence_length} to learn from;"
            f" got {config.burn_in}."
        )
    check_count(who, "burn_in", config.burn_in, low=0)


def replay_needs(who: str, config: Any, *, has_memory: bool) -> ReplayNeeds:
    """Transitions, or sequences for networks with memory.

    Raises:
        ValueError: several steps in each return, with memory.
    """
    if has_memory and config.n_step > 1:
        raise ValueError(f"{who}: with memory n_step must be 1; got {config.n_step}.")
    return ReplayNeeds(
        batch_size=config.batch_size,
        gamma=config.gamma,
        window=config.sequence_length if has_memory else config.n_step,
        sequences=has_memory,
        burn_in=config.burn_in if has_memory else 0,
        alpha=config.alpha,
        beta=config.beta,
    )


ETA = 0.9
"""Weight of the largest error of a sequence beside the mean one (Kapturowski et al. 2019, section 2.3)."""


def priorities_of(td_error: Float[Array, "*batch"]) -> Float[Array, " n"]:
    """Absolute errors of transitions ``[batch]``; of sequences ``[time, batch]`` between their mean and largest."""
    size = jnp.abs(td_error)
    return size if size.ndim == 1 else ETA * jnp.max(size, axis=0) + (1 - ETA) * jnp.mean(size, axis=0)


# ------------------------------------------------------------------ numbers that may be swept

Hyperparams = dict[str, Float[Array, ""]]
"""Numbers of a config that an agent reads from its state, so that ``vmap`` may give each run its own."""

S = TypeVar("S", bound=Any)


def with_hyperparams(state: S, **numbers: Any) -> S:
    """The state of an agent with other numbers in place of those of its config; traceable.

    Of states side by side, as ``num_seeds`` of a loop makes them, each number may be an array with one for each.

    Raises:
        ValueError: the agent has no such number.
    """
    unknown = sorted(set(numbers) - set(state.hyperparams))
    if unknown:
        raise ValueError(f"with_hyperparams: expected some of {sorted(state.hyperparams)}; got {unknown}.")
    old = state.hyperparams
    # Copies: loops donate the state, but not what the caller holds, nor one array twice.
    new = {name: jnp.broadcast_to(jnp.array(x, jnp.float32), old[name].shape) for name, x in numbers.items()}
    return state._replace(hyperparams={**old, **new})
