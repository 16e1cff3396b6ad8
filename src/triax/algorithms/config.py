"""How whole trainings go: what is learned, evaluated, filmed and saved, and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from triax.agents.distillation_config import DistillationAgentConfig
from triax.agents.logging_level import LoggingLevel, checked_percentiles
from triax.agents.ppo_config import PPOAgentConfig
from triax.core.numbers import check_count, check_seed


@dataclass(frozen=True)
class ExperienceConfig:
    """How much experience is gathered, and in which portions."""

    n_envs: int = 256
    """Environments that act side by side; a multiple of ``n_minibatches``."""
    rollout_length: int = 20
    """Steps of each environment between two rounds of learning."""
    total_steps: int = 512_000
    """Steps of all environments together; the last iteration may go beyond."""

    def check_experience(self, n_minibatches: int) -> None:
        """``TypeError`` or ``ValueError`` for numbers that do not go together."""
        who = type(self).__name__
        for name in ("n_envs", "rollout_length"):
            check_count(who, name, getattr(self, name))
        check_count(who, "total_steps", self.total_steps, low=0)
        if self.n_envs % n_minibatches:
            lower = max(self.n_envs - self.n_envs % n_minibatches, n_minibatches)
            raise ValueError(
                f"{who}: n_envs must be a multiple of n_minibatches; got n_envs={self.n_envs} and "
                f"n_minibatches={n_minibatches}. Try n_envs={lower}."
            )

    @property
    def steps_per_iteration(self) -> int:
        """``n_envs * rollout_length``."""
        return self.n_envs * self.rollout_length


@dataclass(frozen=True)
class PPOConfig(PPOAgentConfig, ExperienceConfig):
    """PPO, and the experience that it learns from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_experience(self.n_minibatches)

    @property
    def agent(self) -> PPOAgentConfig:
        """What the agent has to know: trainings of other lengths share compiled programs."""
        return PPOAgentConfig(**_values_of(PPOAgentConfig, self))


@dataclass(frozen=True)
class DistillationConfig(DistillationAgentConfig, ExperienceConfig):
    """Distillation, and the experience of the student that it learns from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_experience(self.n_minibatches)

    @property
    def agent(self) -> DistillationAgentConfig:
        """What the agent has to know."""
        return DistillationAgentConfig(**_values_of(DistillationAgentConfig, self))


@dataclass(frozen=True)
class EvalConfig:
    """When and how the deterministic policy is evaluated."""

    enabled: bool = True
    """Whether at all."""
    every_steps: int = 50_000
    """Before the first iteration, and whenever a multiple of this was reached; 0 for the former only."""
    n_envs: int = 64
    """Episodes, side by side."""
    max_episode_length: int = 1000
    """Steps after which an episode is cut."""
    logging_level: LoggingLevel = LoggingLevel.NONE
    """``ENV_METRICS`` and ``NETWORK_METRICS`` add their families; others say nothing here."""
    logging_percentiles: tuple[float, ...] | None = (0, 25, 50, 75, 100)
    """Besides mean and standard deviation; ``None`` and ``()`` for none."""
    fixed_episodes: bool = False
    """The same initial states in each evaluation, not fresh ones."""

    def __post_init__(self) -> None:
        check_count("EvalConfig", "every_steps", self.every_steps, low=0)
        for name in ("n_envs", "max_episode_length"):
            check_count("EvalConfig", name, getattr(self, name))
        checked_percentiles("EvalConfig", self.logging_percentiles)
        if self.logging_percentiles is not None:
            object.__setattr__(self, "logging_percentiles", tuple(self.logging_percentiles))


@dataclass(frozen=True)
class VideoConfig:
    """When and how the deterministic policy is filmed."""

    enabled: bool = False
    """Whether at all; then ``video_fn`` and an environment with ``render`` are needed."""
    every_steps: int = 200_000
    """Before the first iteration, and whenever a multiple of this was reached; 0 for the former only."""
    episode_length: int = 1000
    """Steps that are filmed, of several episodes if they are shorter."""
    render_kwargs: Mapping[str, Any] = field(default_factory=lambda: {"height": 480, "width": 640}, hash=False)
    """For ``render(states, **render_kwargs)`` of the environment."""

    def __post_init__(self) -> None:
        check_count("VideoConfig", "every_steps", self.every_steps, low=0)
        check_count("VideoConfig", "episode_length", self.episode_length)
        object.__setattr__(self, "render_kwargs", dict(self.render_kwargs))


@dataclass(frozen=True)
class TrainConfig:
    """A training with PPO."""

    ppo: PPOConfig = field(default_factory=PPOConfig)
    """What is learned."""
    eval: EvalConfig = field(default_factory=EvalConfig)
    """Evaluations."""
    video: VideoConfig = field(default_factory=VideoConfig)
    """Videos."""
    seed: int = 17
    """Decides everything that is drawn."""
    checkpoint_every_steps: int = 500_000
    """``checkpoint_fn`` is called before the first iteration and whenever a multiple was reached; 0: only then."""

    def __post_init__(self) -> None:
        _check_run(self)

    @property
    def learning(self) -> PPOConfig:
        """What is learned."""
        return self.ppo


@dataclass(frozen=True)
class DistillationTrainConfig:
    """A training by distillation."""

    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    """What is learned."""
    eval: EvalConfig = field(default_factory=EvalConfig)
    """Evaluations of the student."""
    video: VideoConfig = field(default_factory=VideoConfig)
    """Videos of the student."""
    seed: int = 17
    """Decides everything that is drawn."""
    checkpoint_every_steps: int = 500_000
    """``checkpoint_fn`` is called before the first iteration and whenever a multiple was reached; 0: only then."""

    def __post_init__(self) -> None:
        _check_run(self)

    @property
    def learning(self) -> DistillationConfig:
        """What is learned."""
        return self.distillation


def _check_run(config: TrainConfig | DistillationTrainConfig) -> None:
    check_seed(f"{type(config).__name__}: seed", config.seed)
    check_count(type(config).__name__, "checkpoint_every_steps", config.checkpoint_every_steps, low=0)


def _values_of(base: type, config: Any) -> dict[str, Any]:
    return {entry.name: getattr(config, entry.name) for entry in fields(base)}
