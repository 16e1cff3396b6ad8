"""An agent in many processes, as :class:`~triax.cli.loop_training.LoopTraining` drives it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import PyTree

from triax.agents import QLearningConfig
from triax.cli.environments import make_env
from triax.cli.train_commands import TrainDQN, TrainOffPolicy, TrainQLearning
from triax.distributed import ApeX, ApeXConfig, Recipe
from triax.distributed.extra import import_ray

ALPHA = 0.6
"""Exponent of priorities where none is given (Horgan et al. 2018, section 4.1)."""


class DistributedLoop:
    """Ape-X: rollout workers, a learner and a replay, a process each. It resumes in new episodes.

    Raises:
        MissingExtraError: Ray is not installed.
    """

    keeps_environments = False

    def __init__(self, command: TrainOffPolicy, env: Any, make_agent: Callable[[Any, Any], Any]) -> None:
        import_ray(f"--workers {command.workers}")
        self.goal: float | None = env.spec.reward_threshold if env.spec else None
        self._command = command = _prioritized(command)
        gathering = command.gathering
        config = ApeXConfig(
            num_workers=command.workers,
            num_envs=gathering.num_envs,
            capacity=gathering.capacity,
            warm_up=command.first_update,
            chunk_length=command.processes.chunk_length,
            updates_per_call=command.processes.updates_per_call,
            updates_per_step=gathering.updates_per_iteration / (gathering.steps_per_iteration * gathering.num_envs),
        )
        recipe = Recipe(partial(make_env, command.env), partial(make_agent, command))
        self._ape_x = ApeX(recipe, config, seed=command.seed, address=command.processes.address)
        self._saved: dict[str, Any] | None = None

    @property
    def step(self) -> int:
        """Steps that environments took, each counted."""
        return self._ape_x.steps if self._saved is None else self._saved["scalars"]["steps"]

    def begin(self, should_stop: Callable[[], bool]) -> None:
        """Start all processes, with new weights unless a state was loaded."""
        self._ape_x.start(self._saved, should_stop)
        self._saved = None

    def advance(self, until: int, tick: Callable[[int], bool]) -> dict[str, Any]:
        """Steps until it is time to log, or ``until``, or ``tick`` stops it; what was measured."""
        before, command = self.step, self._command
        every = min(command.log_every, command.eval_every)
        self._ape_x.advance((before // every + 1) * every, until, tick)
        if self.step // command.eval_every > before // command.eval_every:
            self._ape_x.settle()  # an evaluation follows: of these weights, at this step
        return self._ape_x.report()

    def agent_state(self) -> PyTree:
        """Of the agent."""
        return self._ape_x.agent_state()

    def evaluate(self) -> np.ndarray:
        """Returns of greedy episodes."""
        return self._ape_x.evaluate(self._command.eval_episodes, self._command.seed)

    def state_dict(self) -> dict[str, Any]:
        """Of learner, replay and counters."""
        return self._ape_x.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there in new episodes."""
        self._saved = state

    def close(self) -> None:
        """End all processes."""
        self._ape_x.close()


def as_ape_x(command: TrainDQN) -> TrainQLearning:
    """The same training for a pure agent; its learning rate stays what it is, and epsilons are those of the workers."""
    config = command.agent
    shared = ("hidden", "gamma", "n_step", "batch_size", "learning_rate", "max_grad_norm", "tau")
    names = ("env", "seed", "total_steps", "eval_every", "eval_episodes", "stop_at", "checkpoint_every", "run_dir")
    return TrainQLearning(
        **{name: getattr(command, name) for name in (*names, "overwrite", "algorithm", "processes")},
        capacity=config.buffer_size,
        warm_up=max(1, command.first_update),
        steps_per_iteration=config.update_every,
        agent=QLearningConfig(
            rule="double" if config.double else "q",
            alpha=ALPHA,
            **{name: getattr(config, name) for name in shared},
        ),
    )


def _prioritized(command: TrainOffPolicy) -> TrainOffPolicy:
    if command.agent.alpha is not None:
        return command
    return replace(command, agent=replace(command.agent, alpha=ALPHA))
