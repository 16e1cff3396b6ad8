"""What a run has learned, ready to act."""

from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

from triax.cli.algorithms import algorithm_of
from triax.cli.commands import TrainDQN
from triax.runs import Run


class Trained(NamedTuple):
    """An agent with the weights of a run."""

    agent: Any
    """Has ``act_greedily(s)``."""
    step: int
    """The step whose weights it has."""


def config_of(path: Path) -> TrainDQN:
    """The config of a run."""
    run = Run.open(path)
    return run.load_config(algorithm_of(run).command)


def load_trained(path: Path, env: gymnasium.Env, *, last: bool) -> Trained:
    """The agent of a run for ``env``, with its best weights, or with the last ones if there are none or ``last``."""
    run = Run.open(path)
    algorithm = algorithm_of(run)
    agent = algorithm.make_agent(run.load_config(algorithm.command), env)
    store = run.checkpoints if last or run.best.latest_step() is None else run.best
    checkpoint = store.load(agent.weights())
    agent.set_weights(checkpoint.tree)
    return Trained(agent, checkpoint.metadata["step"])
