"""How agents that learn from rollouts learn: PPO, and A2C and REINFORCE as cases of it."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from triax.agents.logging_level import LoggingLevel
from triax.agents.rollout_updates import settle_updates
from triax.core.numbers import check_number


@dataclass(frozen=True)
class PPOAgentConfig:
    """Proximal policy optimization (Schulman et al. 2017, arXiv:1707.06347)."""

    gae_lambda: float = 0.95
    """How far advantages look ahead (Schulman et al. 2016, arXiv:1506.02438): 0 one step, 1 to the end."""
    discounting_factor: float = 0.99
    """Discount factor."""
    clip_range: float = 0.2
    """How far the ratio of probabilities may move from 1."""
    learning_rate: float = 1e-4
    """Step size of Adam."""
    normalize_advantages: bool = True
    """Advantages of each minibatch get mean 0 and deviation 1."""
    n_epochs: int = 4
    """Passes over each rollout."""
    n_minibatches: int = 4
    """Parts of the environments, one update each: whole trajectories, drawn anew in each epoch."""
    critic_loss_weight: float = 1.0
    """Of the critic's loss beside the actor's."""
    gradient_clipping: float | None = None
    """Gradients are scaled down to this norm; ``None``: never."""
    weight_decay: bool | float | None = None
    """``None`` for Adam, ``True`` for AdamW with optax's decay, or AdamW's decay."""
    logging_level: LoggingLevel = LoggingLevel.LOSSES
    """What is measured."""
    logging_percentiles: tuple[float, ...] | None = None
    """Of what is measured, besides mean and standard deviation."""
    combine_advantages: bool = False
    """Every part of the action learns from the sum of the advantages of all rewards, not each from its own."""
    value_clip_range: float | None = None
    """How far values may move from those of the rollout before the critic's loss ignores it; ``None``: anywhere."""
    target_kl: float | None = None
    """Skip the rest of a rollout's updates once the policy is this far from the old one, in nats; ``None``: never."""
    recompute_advantages: bool = False
    """Advantages are computed anew, with the critic of then, before each epoch (Andrychowicz et al. 2021,
    arXiv:2006.05990), instead of once for each rollout."""

    def __post_init__(self) -> None:
        who = type(self).__name__
        for name in ("gae_lambda", "discounting_factor"):
            check_number(who, name, getattr(self, name), low=0, high=1)
        for name in ("clip_range", "critic_loss_weight"):
            check_number(who, name, getattr(self, name), low=0)
        for name in ("value_clip_range", "target_kl"):
            if getattr(self, name) is not None:
                check_number(who, name, getattr(self, name), positive=True)
        settle_updates(self)

    @property
    def structure(self) -> tuple:
        """What programs are compiled for: everything but the values of ``PPONumbers``."""
        values = {field.name: getattr(self, field.name) for field in fields(PPOAgentConfig)}
        return tuple(value is None if name in PPONumbers._fields else value for name, value in values.items())

    @classmethod
    def a2c(cls, **changes: Any) -> Any:
        """Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783): PPO with one update for each rollout."""
        return cls(**{"n_epochs": 1, "n_minibatches": 1, "normalize_advantages": False, **changes})

    @classmethod
    def reinforce(cls, **changes: Any) -> Any:
        """REINFORCE with a baseline (Sutton & Barto 2018, section 13.4): A2C with returns to the end of the episode.

        Rollouts should be as long as episodes: the critic stands for what lies beyond them.
        """
        return cls.a2c(**{"gae_lambda": 1.0, **changes})


Number = Float[Array, ""]


class PPONumbers(NamedTuple):
    """The numbers of a config that may change, or differ between agents of one ``vmap``, without compiling anew."""

    learning_rate: Number
    discounting_factor: Number
    gae_lambda: Number
    clip_range: Number
    critic_loss_weight: Number
    value_clip_range: Number | None
    target_kl: Number | None

    @classmethod
    def of(cls, config: PPOAgentConfig) -> "PPONumbers":
        """Those of a config."""
        numbers: dict[str, Any] = {name: getattr(config, name) for name in cls._fields}
        given = {name: jnp.asarray(number, jnp.float32) for name, number in numbers.items() if number is not None}
        return cls(**(numbers | given))
