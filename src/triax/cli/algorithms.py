"""What each value of ``algorithm`` in a run's config stands for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium

from triax.agents import DQN
from triax.cli.commands import TrainDQN
from triax.cli.host_training import HostTraining
from triax.cli.training import Training
from triax.core.errors import TriaxError
from triax.runs import Run


class UnknownAlgorithmError(TriaxError, ValueError):
    """A run was trained with an algorithm that is not known here."""


class Algorithm(NamedTuple):
    """How to read a run's config, train, and act with what was learned."""

    summary: str
    """What it is, in a line."""
    needs: str
    """Of the environment."""
    command: type[TrainDQN]
    """The class of its config."""
    make_training: Callable[[Any], Training]
    """A training that has not begun, from a config."""
    make_agent: Callable[[Any, gymnasium.Env], Any]
    """For a config and a Gymnasium environment; has ``weights()``, ``set_weights(weights)``, ``act_greedily(s)``."""


def _make_dqn(command: TrainDQN, env: gymnasium.Env) -> DQN:
    return DQN(env, command.agent, total_steps=command.total_steps, seed=command.seed)


ALGORITHMS = {
    "dqn": Algorithm(
        summary="Deep Q-learning from replay: double, n-step and prioritized as options",
        needs="Discrete actions; a Gymnasium environment",
        command=TrainDQN,
        make_training=lambda command: HostTraining(command, _make_dqn),
        make_agent=_make_dqn,
    )
}


def algorithm_of(run: Run) -> Algorithm:
    """That of the run's config; ``UnknownAlgorithmError`` if it is none of these."""
    config = run.read_config()
    name = config.get("algorithm") if isinstance(config, dict) else None
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise UnknownAlgorithmError(f"{run.path} was trained with the algorithm {name!r}; known are: {known}.")
    return ALGORITHMS[name]
