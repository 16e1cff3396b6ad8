"""What the configs of off-policy actor-critic agents share."""

from dataclasses import dataclass

from triax.agents.off_policy import check_replay_options
from triax.core.numbers import check_count, check_number


@dataclass(frozen=True)
class ActorCriticConfig:
    """Networks, replay and step sizes of an agent with an actor and several critics."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of the networks that are made here."""
    num_critics: int = 2
    """Critics; the smallest value counts (Fujimoto et al. 2018, arXiv:1802.09477)."""
    gamma: float = 0.99
    """Discount factor."""
    n_step: int = 1
    """Steps of each return before it bootstraps; 1 with memory."""
    batch_size: int = 256
    """Transitions, or sequences, per update."""
    alpha: float | None = None
    """Exponent of priorities (Schaul et al. 2015); ``None`` samples uniformly."""
    beta: float = 0.4
    """Exponent of importance weights."""
    sequence_length: int = 40
    """Steps of a sequence with burn-in, for networks with memory (R2D2, Kapturowski et al. 2019)."""
    burn_in: int = 20
    """Steps of it that only bring memory up to date."""
    learning_rate: float = 3e-4
    """Step size of Adam for the critics."""
    actor_learning_rate: float = 3e-4
    """Step size of Adam for the actor."""
    max_grad_norm: float | None = None
    """Gradients of critics and actor are scaled down to this norm; ``None`` leaves them."""
    tau: float = 0.005
    """How far the target networks move to the online ones each time, 1 for a copy."""

    def __post_init__(self) -> None:
        who = type(self).__name__
        check_replay_options(self)
        check_count(who, "num_critics", self.num_critics)
        for name in ("learning_rate", "actor_learning_rate"):
            check_number(who, name, getattr(self, name), positive=True)
        check_number(who, "tau", self.tau, low=0, high=1)
        if self.max_grad_norm is not None:
            check_number(who, "max_grad_norm", self.max_grad_norm, positive=True)
