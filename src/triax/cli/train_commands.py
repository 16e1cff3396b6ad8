"""What ``triax train`` takes for each algorithm."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from triax.agents import DQNConfig, PPOAgentConfig, QLearningConfig, SACConfig, TD3Config
from triax.cli.numbers import check_positive, check_seed, check_stop_at
from triax.core.numbers import check_count
from triax.loops import OffPolicyConfig, OnPolicyConfig


@dataclass(frozen=True)
class Processes:
    """Of runs beyond one process."""

    workers: int = 0
    """Rollout workers, a process each, beside one that learns and one for replay (Ape-X, Horgan et al. 2018); 0 is all
    in one process. Needs triax[ray] and a Gymnasium environment. Replay is prioritized then, with alpha 0.6 unless
    given, and each worker has an epsilon of its own. Not reproducible number for number."""
    address: str | None = None
    """Of the Ray cluster that they run in, such as auto or 10.0.0.1:6379; by default, or local, this machine."""
    chunk_length: int = 32
    """Steps that a worker makes before it hands them over and looks for newer weights."""
    updates_per_call: int = 16
    """Updates before new weights are published."""

    def __post_init__(self) -> None:
        for name in ("chunk_length", "updates_per_call"):
            check_positive(name, getattr(self, name))
        if self.workers < 0:
            raise ValueError(f"workers must not be negative; got {self.workers}.")
        if self.address is not None and not self.workers:
            raise ValueError("address needs workers: try --workers 4.")


@dataclass(frozen=True)
class TrainCommand:
    """What all have."""

    env: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="ENV")]]
    """Gymnasium id, e.g. CartPole-v1; module:Name-v0 imports the module that registers it."""
    seed: int = 0
    """Decides everything that is random."""
    total_steps: int = 100_000
    """Steps to train for."""
    eval_every: int = 2_500
    """Steps between evaluations of the greedy policy; the best one is kept."""
    eval_episodes: int = 20
    """Episodes of each evaluation."""
    stop_at: float | None = None
    """Stop when an evaluation reaches this mean return; by default the reward threshold of the environment."""
    checkpoint_every: float = 15.0
    """Seconds between states to resume from, at least; each is taken when an episode ends."""
    run_dir: Path | None = None
    """Where the run goes; by default runs/ALGORITHM-ENV-SEED."""
    overwrite: bool = False
    """Replace an earlier run in the same directory."""
    wandb: bool = False
    """Log to Weights & Biases too (pip install 'triax[wandb]'); WANDB_PROJECT, WANDB_MODE=offline etc. are heeded."""

    agent: tyro.conf.Suppress[Any] = None
    algorithm: tyro.conf.Suppress[str] = ""

    def __post_init__(self) -> None:
        for name in ("total_steps", "eval_every", "eval_episodes"):
            check_positive(name, getattr(self, name))
        check_seed(self.seed)
        check_stop_at(self.stop_at)
        if not self.checkpoint_every >= 0:
            raise ValueError(f"checkpoint_every must be at least 0; got {self.checkpoint_every}.")

    @property
    def first_update(self) -> int:
        """Steps after which learning begins."""
        return 0

    @property
    def workers(self) -> int:
        """Processes that act; 0 if all is one process."""
        return 0


@dataclass(frozen=True)
class TrainDQN(TrainCommand):
    """Train DQN on a Gymnasium environment with Discrete actions. Ctrl-C stops and keeps what was learned."""

    processes: tyro.conf.OmitArgPrefixes[Processes] = field(default_factory=Processes)
    """Where it runs."""
    agent: tyro.conf.OmitArgPrefixes[DQNConfig] = field(default_factory=DQNConfig)
    """How DQN learns."""
    algorithm: tyro.conf.Suppress[str] = "dqn"

    @property
    def first_update(self) -> int:
        """Steps after which learning begins."""
        return max(self.agent.learning_starts, self.agent.batch_size)

    @property
    def workers(self) -> int:
        """Processes that act; 0 if all is one process."""
        return self.processes.workers


@dataclass(frozen=True)
class TrainSideBySide(TrainCommand):
    """Of agents that act in many environments at once."""

    env: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="ENV")]]
    """Gymnasium id, e.g. CartPole-v1 or module:Name-v0; or a JAX environment, which makes training one compiled
    program: gymnax:NAME (needs triax[gymnax]), brax:NAME or playground:NAME (triax[mujoco]), or a class of yours,
    module:Class (no extra)."""
    num_envs: int = 1
    """Environments side by side; on a GPU or TPU some thousands."""
    seeds: int = 1
    """Train so many seeds, from --seed on, in one compiled program; of JAX environments only. Each leaves a run of its
    own in the run's directory: seeds/0, seeds/1, ..."""
    devices: int = 1
    """Split environments, and the batches learned from, over so many devices of this machine; of JAX environments
    only. Both numbers must be multiples of it. The outcome is the same up to rounding."""
    log_every: int = 2_000
    """Steps between two rows of metrics, each a mean; in whole rollouts or updates."""
    checkpoint_every: float = 15.0
    """Seconds between states to resume from, at least. From one a JAX environment goes on bit for bit; Gymnasium
    environments cannot be saved, and begin new episodes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("seeds", "devices", "log_every"):
            check_positive(name, getattr(self, name))
        check_seed(self.seed + self.seeds - 1)


@dataclass(frozen=True)
class TrainOnPolicy(TrainSideBySide):
    """Of agents that learn from rollouts."""

    total_steps: int = 500_000
    """Steps of all environments together to train for."""
    eval_every: int = 20_000
    """Steps between evaluations of the greedy policy; the best one is kept."""
    num_envs: int = 8
    """Environments side by side; on a GPU or TPU some thousands."""
    rollout_length: int = 128
    """Steps of each of them before the agent learns."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of the actor, and of the critic."""
    entropy_weight: float = 0.01
    """Worth of the policy's entropy in its loss."""
    normalize_obs: bool = True
    """Scale observations by their running mean and deviation."""
    agent: tyro.conf.OmitArgPrefixes[PPOAgentConfig] = field(default_factory=PPOAgentConfig)
    """How it learns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        config = self.gathering
        for width in self.hidden:
            check_count(self.algorithm, "each width of hidden", width)
        parts = self.agent.n_minibatches
        if config.num_envs % parts:
            raise ValueError(f"num_envs must be a multiple of n_minibatches; got {config.num_envs} and {parts}.")
        if config.num_envs % (parts * self.devices):  # or it would be said after the run was created
            raise ValueError(
                f"num_envs must be a multiple of n_minibatches * devices, {parts * self.devices}; got"
                f" {config.num_envs}."
            )

    @property
    def gathering(self) -> OnPolicyConfig:
        """How experience is gathered."""
        return OnPolicyConfig(self.num_envs, self.rollout_length)


def _default_ppo() -> PPOAgentConfig:
    return PPOAgentConfig(learning_rate=1e-3, gradient_clipping=0.5)


@dataclass(frozen=True)
class TrainPPO(TrainOnPolicy):
    """Train PPO on any actions. Ctrl-C stops and keeps what was learned."""

    agent: tyro.conf.OmitArgPrefixes[PPOAgentConfig] = field(default_factory=_default_ppo)
    """How PPO learns."""
    algorithm: tyro.conf.Suppress[str] = "ppo"


def _default_a2c() -> PPOAgentConfig:
    return PPOAgentConfig.a2c(learning_rate=1e-3, gradient_clipping=0.5)


@dataclass(frozen=True)
class TrainA2C(TrainOnPolicy):
    """Train A2C on any actions. Ctrl-C stops and keeps what was learned."""

    rollout_length: int = 8
    """Steps of each of them before the agent learns."""
    agent: tyro.conf.OmitArgPrefixes[PPOAgentConfig] = field(default_factory=_default_a2c)
    """How A2C learns."""
    algorithm: tyro.conf.Suppress[str] = "a2c"


def _default_reinforce() -> PPOAgentConfig:
    return PPOAgentConfig.reinforce(learning_rate=3e-3, gradient_clipping=0.5)


@dataclass(frozen=True)
class TrainReinforce(TrainOnPolicy):
    """Train REINFORCE with a baseline on any actions. Ctrl-C stops and keeps what was learned."""

    rollout_length: int = 500
    """Steps of each of them before the agent learns; as long as episodes, or the critic stands for the rest."""
    agent: tyro.conf.OmitArgPrefixes[PPOAgentConfig] = field(default_factory=_default_reinforce)
    """How REINFORCE learns."""
    algorithm: tyro.conf.Suppress[str] = "reinforce"


@dataclass(frozen=True)
class TrainOffPolicy(TrainSideBySide):
    """Of agents that learn from replay."""

    capacity: int = 100_000
    """Transitions that replay keeps."""
    warm_up: int = 1_000
    """Transitions gathered before the first update."""
    steps_per_iteration: int = 1
    """Steps of all environments ..."""
    updates_per_iteration: int = 1
    """... before so many updates."""
    processes: tyro.conf.OmitArgPrefixes[Processes] = field(default_factory=Processes)
    """Where it runs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.gathering

    @property
    def gathering(self) -> OffPolicyConfig:
        """How experience is gathered."""
        return OffPolicyConfig(
            self.num_envs, self.capacity, self.warm_up, self.steps_per_iteration, self.updates_per_iteration
        )

    @property
    def first_update(self) -> int:
        """Steps after which learning begins."""
        return self.gathering.warm_up_steps * self.num_envs

    @property
    def workers(self) -> int:
        """Processes that act; 0 if all is one process."""
        return self.processes.workers


@dataclass(frozen=True)
class TrainQLearning(TrainOffPolicy):
    """Train a Q-learning agent on Discrete actions: the rule, what is learned of returns and how it is replayed are
    options. Ctrl-C stops and keeps what was learned.
    """

    agent: tyro.conf.OmitArgPrefixes[QLearningConfig] = field(default_factory=QLearningConfig)
    """How it learns."""
    algorithm: tyro.conf.Suppress[str] = "q-learning"


def _default_qr_dqn() -> QLearningConfig:
    return QLearningConfig(rule="q", values="quantiles")


@dataclass(frozen=True)
class TrainQRDQN(TrainOffPolicy):
    """Train QR-DQN on Discrete actions: Q-learning of quantiles. Ctrl-C stops and keeps what was learned."""

    agent: tyro.conf.OmitArgPrefixes[QLearningConfig] = field(default_factory=_default_qr_dqn)
    """How it learns."""
    algorithm: tyro.conf.Suppress[str] = "qr-dqn"


def _default_c51() -> QLearningConfig:
    return QLearningConfig(rule="q", values="bins")


@dataclass(frozen=True)
class TrainC51(TrainOffPolicy):
    """Train C51 on Discrete actions: Q-learning of bins; --value-range must hold all discounted returns. Ctrl-C stops
    and keeps what was learned.
    """

    agent: tyro.conf.OmitArgPrefixes[QLearningConfig] = field(default_factory=_default_c51)
    """How it learns."""
    algorithm: tyro.conf.Suppress[str] = "c51"


@dataclass(frozen=True)
class TrainSAC(TrainOffPolicy):
    """Train SAC on a bounded Box of actions, or Discrete ones. Ctrl-C stops and keeps what was learned."""

    agent: tyro.conf.OmitArgPrefixes[SACConfig] = field(default_factory=SACConfig)
    """How SAC learns."""
    algorithm: tyro.conf.Suppress[str] = "sac"


@dataclass(frozen=True)
class TrainTD3(TrainOffPolicy):
    """Train TD3 on a bounded Box of actions. Ctrl-C stops and keeps what was learned."""

    agent: tyro.conf.OmitArgPrefixes[TD3Config] = field(default_factory=TD3Config)
    """How TD3 learns."""
    algorithm: tyro.conf.Suppress[str] = "td3"


@dataclass(frozen=True)
class TrainDDPG(TrainOffPolicy):
    """Train DDPG on a bounded Box of actions: TD3 as the agent it came from. Ctrl-C stops and keeps what was
    learned.
    """

    agent: tyro.conf.OmitArgPrefixes[TD3Config] = field(default_factory=TD3Config.ddpg)
    """How DDPG learns."""
    algorithm: tyro.conf.Suppress[str] = "ddpg"
