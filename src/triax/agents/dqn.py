"""DQN with soft target updates: the concepts assembled into an agent that a Gymnasium loop drives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
import optax
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.agents.default_networks import ActionValues
from triax.agents.descent import packing
from triax.agents.description import describe_config
from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import KeyStream
from triax.core.leaves import named_leaves, restore_tree
from triax.core.numbers import check_count, check_number
from triax.core.schedules import StepwiseLinearFunction
from triax.experience_replay import PrioritizedReplayBuffer, SimpleReplayBuffer
from triax.functions import EpsilonGreedy, Q
from triax.functions.description import describe_function
from triax.reward_tracing import NStep, TransitionBatch
from triax.spaces import safe_sample
from triax.td_learning import DoubleQLearning, QLearning

_LEARNED, _REPLAY = "learned/", "replay/"


@dataclass(frozen=True)
class DQNConfig:
    """How DQN learns (Mnih et al. 2015; double: van Hasselt et al. 2015; prioritized: Schaul et al. 2015)."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers."""
    learning_rate: float = 1e-3
    """Step size of Adam at the start; it falls linearly to a tenth over the run."""
    gamma: float = 0.99
    """Discount factor."""
    n_step: int = 1
    """Steps of each return before it bootstraps."""
    double: bool = True
    """Pick the next action with the online network."""
    prioritized: bool = False
    """Replay in proportion to the TD error."""
    buffer_size: int = 50_000
    """Transitions that are kept."""
    batch_size: int = 64
    """Transitions per update."""
    learning_starts: int = 1_000
    """Transitions gathered before the first update."""
    update_every: int = 1
    """Steps between updates."""
    tau: float = 0.005
    """Weight of the online network in each soft update of the target."""
    epsilon_start: float = 1.0
    """Exploration at first."""
    epsilon_final: float = 0.05
    """Exploration at last."""
    epsilon_steps: int = 10_000
    """Steps over which exploration falls linearly."""
    max_grad_norm: float = 10.0
    """Gradients are scaled down to this norm."""

    def __post_init__(self) -> None:
        for name in ("n_step", "buffer_size", "batch_size", "update_every", "epsilon_steps"):
            check_count("DQN", name, getattr(self, name))
        check_count("DQN", "learning_starts", self.learning_starts, low=0)
        for name in ("learning_rate", "max_grad_norm"):
            check_number("DQN", name, getattr(self, name), positive=True)
        for name in ("gamma", "tau", "epsilon_start", "epsilon_final"):
            check_number("DQN", name, getattr(self, name), low=0, high=1)
        for width in self.hidden:
            check_count("DQN", "each width of hidden", width)
        if self.buffer_size < max(self.learning_starts, self.batch_size):
            raise ValueError(
                f"DQN: buffer_size must hold learning_starts and batch_size, or learning never begins; got"
                f" {self.buffer_size}, {self.learning_starts} and {self.batch_size}."
            )


class DQN:
    """An agent for ``Discrete`` actions, made of ``Q``, ``EpsilonGreedy``, ``NStep``, replay and ``QLearning``.

    Args:
        env: anything with ``observation_space`` and ``action_space``.
        config: how it learns.
        total_steps: the length of the run, which schedules span.
        seed: decides weights, exploration and replay.
        func: a q-function of type 2 in any form that ``Q`` takes; default a multi-layer perceptron.

    Raises:
        TypeError: the action space is not ``Discrete``.
    """

    name: ClassVar[str] = "dqn"

    def __init__(
        self,
        env: Any,
        config: DQNConfig | None = None,
        *,
        total_steps: int = 100_000,
        seed: int = 0,
        func: Any = None,
    ) -> None:
        refuse_unmade_env("DQN", env)
        if not isinstance(env.action_space, Discrete):
            raise TypeError(f"DQN: needs a Discrete action space; got {env.action_space}.")
        self.config = config = config or DQNConfig()
        self.q = Q(func or ActionValues.factory(env, config.hidden), env, random_seed=seed)
        self.q_targ = self.q.copy()
        self.pi = EpsilonGreedy(self.q, epsilon=config.epsilon_start)
        self._greedy_q = self.q.copy()
        self._greedy = EpsilonGreedy(self._greedy_q, epsilon=0.0)
        rule = DoubleQLearning if config.double else QLearning
        self.rule = rule(self.q, q_targ=self.q_targ, optimizer=_optimizer(config, total_steps))
        self.tracer = NStep(config.n_step, config.gamma)
        buffer = PrioritizedReplayBuffer if config.prioritized else SimpleReplayBuffer
        self.buffer = buffer(config.buffer_size, random_seed=seed)
        self._epsilon = StepwiseLinearFunction((0, config.epsilon_start), (config.epsilon_steps, config.epsilon_final))
        self.step = 0

    def __repr__(self) -> str:
        parts = {"q": self.q, "rule": self.rule, "tracer": self.tracer, "buffer": self.buffer}
        return describe_function("DQN", [f"step={self.step:,}"], {**parts, "config": describe_config(self.config)})

    def act(self, s: Any) -> Any:
        """An exploring action."""
        self.pi.epsilon = self._epsilon(self.step)
        return self.pi(s)

    def act_greedily(self, s: Any) -> Any:
        """The action of the highest value; draws from keys of its own, so that evaluating does not alter training."""
        self._greedy_q.put_weights(*self.q.export_weights(None))
        return self._greedy(s)

    def observe(
        self, s: Any, a: Any, r: float, terminated: bool, truncated: bool, s_next: Any
    ) -> dict[str, Any] | None:
        """Take in one step and, when it is time, learn: the metrics of the update, on the device."""
        self.step += 1
        self.tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
        while self.tracer:
            self.buffer.add(self.tracer.pop())
        ready = len(self.buffer) >= max(self.config.learning_starts, self.config.batch_size)
        return self._learn() if ready and self.step % self.config.update_every == 0 else None

    def _learn(self) -> dict[str, Any]:
        batch = self.buffer.sample(self.config.batch_size)
        target = self.q_targ, self.config.tau
        metrics, td_error = self.rule.update(batch, return_td_error=True, soft_update=target)
        if isinstance(self.buffer, PrioritizedReplayBuffer):
            self.buffer.update(batch.idx, td_error)
        return metrics

    def weights(self) -> PyTree:
        """What acting needs, for a checkpoint."""
        return {"params": self.q.params, "function_state": self.q.function_state}

    def set_weights(self, weights: PyTree) -> None:
        """Act with the weights of a checkpoint."""
        self.q.params, self.q.function_state = weights["params"], weights["function_state"]

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes next: ``{"scalars": <what JSON can hold>, "arrays": {path: array}}``.

        An agent made alike that loads it goes on bit for bit. Raises ``ValueError`` while an episode is running:
        its environment could not be saved either.
        """
        if len(self.tracer):
            raise ValueError(
                "DQN.state_dict: must be called where an episode has ended;"
                f" {len(self.tracer)} steps of one are cached."
            )
        self.rule.raise_if_not_finite()
        replay = self.buffer.state_dict()
        arrays = {f"{_LEARNED}{path}": leaf for path, leaf in named_leaves(self._learned()).items()}
        arrays |= {f"{_REPLAY}{path}": array for path, array in replay["arrays"].items()}
        counts = {name: stream.position[1] for name, stream in self._key_streams().items()}
        return {"scalars": {"step": self.step, "counts": counts, "replay": replay["scalars"]}, "arrays": arrays}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state of :meth:`state_dict`, whose arrays may be NumPy arrays.

        Raises ``ValueError`` that lists the leaves that differ, for an agent that is not made alike; it is as before
        then.
        """
        scalars = state["scalars"]
        learned = restore_tree(self._learned(), _part(_LEARNED, state["arrays"]), "DQN")
        replay = _part(_REPLAY, state["arrays"])
        self.buffer.load_state_dict({"scalars": scalars["replay"], "arrays": replay}, self._example(replay))
        for name, function in self._functions().items():
            function.params, function.function_state = learned[name]["params"], learned[name]["function_state"]
        self.rule.optimizer_state = learned["optimizer_state"]
        for name, stream in self._key_streams().items():
            stream.position = learned["keys"][name], scalars["counts"][name]
        self.step = scalars["step"]

    def _functions(self) -> dict[str, Q]:
        return {"q": self.q, "q_targ": self.q_targ}

    def _key_streams(self) -> dict[str, KeyStream]:
        owners = {**self._functions(), "greedy": self._greedy_q, "rule": self.rule}
        return {name: owner.key_stream for name, owner in owners.items()}

    def _learned(self) -> PyTree:
        weights = {
            name: {"params": function.params, "function_state": function.function_state}
            for name, function in self._functions().items()
        }
        keys = {name: stream.position[0] for name, stream in self._key_streams().items()}
        return {**weights, "optimizer_state": self.rule.optimizer_state, "keys": keys}

    def _example(self, replay: Mapping[str, np.ndarray]) -> TransitionBatch:
        """A transition like those in replay: the spaces tell its structure, the arrays what dtypes really came."""
        tracer = NStep(self.config.n_step, self.config.gamma)
        s, a = safe_sample(self.q.observation_space, 0), safe_sample(self.q.action_space, 0)
        tracer.add(s, a, 0.0, True, s_next=s)

        def as_stored(path: Any, leaf: np.ndarray) -> np.ndarray:
            rows = replay.get(f"rows/{jax.tree_util.keystr(path, simple=True, separator='/')}")
            return leaf if rows is None or rows.shape[1:] != leaf.shape[1:] else leaf.astype(rows.dtype)

        return jax.tree_util.tree_map_with_path(as_stored, tracer.pop())


def _part(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays whose paths begin so, by the rest of their paths."""
    return {path.removeprefix(prefix): array for path, array in arrays.items() if path.startswith(prefix)}


def _optimizer(config: DQNConfig, total_steps: int) -> optax.GradientTransformation:
    learning_rate = optax.linear_schedule(
        config.learning_rate, 0.1 * config.learning_rate, max(1, total_steps // config.update_every)
    )
    return packing(optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(learning_rate)))
