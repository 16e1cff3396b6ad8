"""How a student learns from a teacher."""

from dataclasses import dataclass, fields

from triax.agents.logging_level import LoggingLevel
from triax.agents.rollout_updates import settle_updates

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
        if self.loss not in LOSSES:
            raise ValueError(f"{type(self).__name__}: loss must be 'kl', 'sample' or 'mode'; got {self.loss!r}.")
        settle_updates(self)

    @property
    def structure(self) -> tuple:
        """What programs are compiled for: everything but the learning rate, also of a config that says more."""
        names = [field.name for field in fields(DistillationAgentConfig) if field.name != "learning_rate"]
        return tuple(getattr(self, name) for name in names)
