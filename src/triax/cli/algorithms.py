"""What each value of ``algorithm`` in a run's config stands for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium

from triax.agents import DQN
from triax.cli.commands import TrainDQN
from triax.core.errors import TriaxError
from triax.runs import Run


class UnknownAlgorithmError(TriaxError, ValueError):
    """A run was trained with an algorithm that is not known here."""


class Algorithm(NamedTuple):
    """How to read a run's config and make its agent."""

    command: type[TrainDQN]
    make_agent: Callable[[Any, gymnasium.Env], Any]


def _make_dqn(command: TrainDQN, env: gymnasium.Env) -> DQN:
    return DQN(env, command.agent, total_steps=command.total_steps, seed=command.seed)


ALGORITHMS = {"dqn": Algorithm(TrainDQN, _make_dqn)}


def algorithm_of(run: Run) -> Algorithm:
    """That of the run's config; ``UnknownAlgorithmError`` if it is none of these."""
    config = run.read_config()
    name = config.get("algorithm") if isinstance(config, dict) else None
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise UnknownAlgorithmError(f"{run.path} was trained with the algorithm {name!r}; known are: {known}.")
    return ALGORITHMS[name]
