"""How a student learns from a teacher."""

from dataclasses import dataclass, fields

from triax.agents.logging_level import LoggingLevel
from triax.agents.ppo_config import decay_of
from triax.core.numbers import check_count, check_number

LOSSES = ("kl", "sample", "mode")


@dataclass(frozen=True)
class DistillationAgentConfig:
    """On-policy distillation (Czarnecki et al. 2019, arXiv:1902.02186)."""

    learning_rate: float = 1e-4
    """Step size of Adam."""
    n_epochs: int = 4
    """Passes over each rollout."""
    n_minibatches: int = 4
    """Parts of the environments, one update each: whole trajectories, drawn anew in each epoch."""
    gradient_clipping: float | None = None
    """Gradients are scaled down to this norm; ``None``: never."""
    weight_decay: bool | float | None = None
    """``None`` for Adam, ``True`` for AdamW with optax's decay, or AdamW's decay."""
    logging_level: LoggingLevel = LoggingLevel.LOSSES
    """What is measured."""
    logging_percentiles: tuple[float, ...] | None = None
    """Of what is measured, besides mean and standard deviation."""
    loss: str = "kl"
    """``"kl"``: the divergence of the student's distribution from the teacher's (of mere actions: minus their
    log-likelihood). ``"sample"``: minus the log-likelihood of a sample of the teacher, which also works where the two
    have distributions of other kinds. ``"mode"``: that of the teacher's mean or mode, which knows nothing of the
    teacher's spread and makes the student's collapse."""

    def __post_init__(self) -> None:
        who = type(self).__name__
        if self.loss not in LOSSES:
            raise ValueError(f"{who}: loss must be 'kl', 'sample' or 'mode'; got {self.loss!r}.")
        check_number(who, "learning_rate", self.learning_rate, positive=True)
        if self.gradient_clipping is not None:
            check_number(who, "gradient_clipping", self.gradient_clipping, positive=True)
        if self.weight_decay is not None and not isinstance(self.weight_decay, bool):
            check_number(who, "weight_decay", self.weight_decay, low=0)
        for name in ("n_epochs", "n_minibatches"):
            check_count(who, name, getattr(self, name))
        for level in self.logging_percentiles or ():
            check_number(who, "each of logging_percentiles", level, low=0, high=100)
        if self.logging_percentiles is not None:
            object.__setattr__(self, "logging_percentiles", tuple(map(float, self.logging_percentiles)))

    @property
    def decay(self) -> float:
        """The weight decay as a number."""
        return decay_of(self.weight_decay)

    @property
    def structure(self) -> tuple:
        """What programs are compiled for: everything but the learning rate, also of a config that says more."""
        names = [field.name for field in fields(DistillationAgentConfig) if field.name != "learning_rate"]
        return tuple(getattr(self, name) for name in names)
