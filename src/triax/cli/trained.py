"""What a run has learned, ready to act."""

from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
from jaxtyping import PyTree

from triax.cli.algorithms import Algorithm, algorithm_of
from triax.cli.train_commands import TrainCommand
from triax.runs import CheckpointStore, Run


class Trained(NamedTuple):
    """An agent with the weights of a run."""

    agent: Any
    """Has ``act_greedily(s)``."""
    step: int
    """The step whose weights it has."""


class PureTrained(NamedTuple):
    """A pure agent and what a run has learned."""

    agent: Any
    state: PyTree
    step: int
    """The step whose state it is."""


def config_of(path: Path) -> TrainCommand:
    """The config of a run."""
    run = Run.open(path)
    return run.load_config(algorithm_of(run).command)


def load_trained(path: Path, env: gymnasium.Env, *, last: bool) -> Trained:
    """The agent of a run for ``env``, with its best weights, or with the last ones if there are none or ``last``."""
    run, algorithm = _open(path)
    agent = algorithm.make_agent(run.load_config(algorithm.command), env)
    checkpoint = _store(run, last=last).load(agent.weights())
    agent.set_weights(checkpoint.tree)
    return Trained(agent, checkpoint.metadata["step"])


def load_pure(path: Path, env: Any, *, last: bool) -> PureTrained:
    """As :func:`load_trained`, of a run in a JAX environment. ``TypeError`` if its agent is not pure."""
    run, algorithm = _open(path)
    if algorithm.make_pure is None:
        raise TypeError(f"{path}: the agent of {run.read_config()['algorithm']} acts in no JAX environment.")
    agent = algorithm.make_pure(run.load_config(algorithm.command), env)
    checkpoint = _store(run, last=last).load(jax.eval_shape(agent.init, jax.random.key(0)))
    return PureTrained(agent, checkpoint.tree, checkpoint.metadata["step"])


def _open(path: Path) -> tuple[Run, Algorithm]:
    run = Run.open(path)
    return run, algorithm_of(run)


def _store(run: Run, *, last: bool) -> CheckpointStore:
    return run.checkpoints if last or run.best.latest_step() is None else run.best
