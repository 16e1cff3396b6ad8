"""``triax evaluate``: what a run has learned."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from triax.cli.commands import Evaluate
from triax.cli.device_evaluation import DeviceEvaluation
from triax.cli.environments import is_on_device, make_any_env, make_env
from triax.cli.trained import config_of, load_pure, load_trained
from triax.loops import evaluate
from triax.runs import Run


def evaluate_run(command: Evaluate) -> int:
    """Print mean and spread of the returns, of each seed if there are several; the exit code."""
    for path in Run.open(command.run).parts():
        _evaluate_one(path, command)
    return 0


def _evaluate_one(path: Path, command: Evaluate) -> None:
    config = config_of(path)
    returns, step = _play(path, config, command)
    print(
        f"{config.env}, {config.algorithm}, {'' if path == command.run else f'seed {config.seed}, '}"
        f"weights of step {step:,}: mean return {returns.mean():.1f} +- {returns.std():.1f}"
        f" over {command.episodes} episodes (min {returns.min():.1f}, max {returns.max():.1f})"
    )


def _play(path: Path, config: Any, command: Evaluate) -> tuple[np.ndarray, int]:
    """Returns, and the step whose weights played."""
    if config.algorithm != "dqn" and is_on_device(env := make_any_env(config.env)):
        pure = load_pure(path, env, last=command.last)
        evaluation = DeviceEvaluation(pure.agent, env, command.episodes)
        return evaluation(pure.state, jax.random.key(command.seed)), pure.step
    env = make_env(config.env)
    trained = load_trained(path, env, last=command.last)
    returns = evaluate(trained.agent.act_greedily, env, num_episodes=command.episodes, seed=command.seed)
    env.close()
    return returns, trained.step
