"""What each value of ``algorithm`` in a run's config stands for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium

from triax.agents import DQN
from triax.cli.distributed_loop import as_ape_x
from triax.cli.host_training import HostTraining
from triax.cli.loop_training import LoopTraining
from triax.cli.pure_agents import GreedyAgent, make_ppo, make_q_learning, make_sac, make_td3
from triax.cli.train_commands import (
    TrainA2C,
    TrainC51,
    TrainCommand,
    TrainDDPG,
    TrainDQN,
    TrainPPO,
    TrainQLearning,
    TrainQRDQN,
    TrainReinforce,
    TrainSAC,
    TrainTD3,
)
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
    command: type[TrainCommand]
    """The class of its config."""
    make_training: Callable[[Any], Training]
    """A training that has not begun, from a config."""
    make_agent: Callable[[Any, gymnasium.Env], Any]
    """For a config and a Gymnasium environment; has ``weights()``, ``set_weights(weights)``, ``act_greedily(s)``."""
    make_pure: Callable[[Any, Any], Any] | None = None
    """For a config and an environment of any kind: the pure agent, if it is one."""


def _make_dqn(command: TrainDQN, env: gymnasium.Env) -> DQN:
    return DQN(env, command.agent, total_steps=command.total_steps, seed=command.seed)


def _make_acting_dqn(command: TrainDQN, env: gymnasium.Env) -> Any:
    return GreedyAgent(make_q_learning(as_ape_x(command), env), env) if command.workers else _make_dqn(command, env)


def _train_dqn(command: TrainDQN) -> Training:
    return LoopTraining(as_ape_x(command), make_q_learning) if command.workers else HostTraining(command, _make_dqn)


def _pure(summary: str, needs: str, command: type[TrainCommand], make_agent: Callable[[Any, Any], Any]) -> Algorithm:
    """An algorithm whose agent is pure: on the device, or in Gymnasium environments side by side."""
    return Algorithm(
        summary=summary,
        needs=f"{needs}; a JAX or Gymnasium environment",
        command=command,
        make_training=lambda config: LoopTraining(config, make_agent),
        make_agent=lambda config, env: GreedyAgent(make_agent(config, env), env),
        make_pure=make_agent,
    )


_DISCRETE, _BOX = "Discrete actions", "a bounded Box of actions"

ALGORITHMS = {
    "dqn": Algorithm(
        summary="Deep Q-learning from replay: double, n-step and prioritized as options",
        needs="Discrete actions; a Gymnasium environment",
        command=TrainDQN,
        make_training=_train_dqn,
        make_agent=_make_acting_dqn,
    ),
    "q-learning": _pure(
        "Q-learning from replay: rule, values, dueling, n-step, prioritized as options",
        _DISCRETE,
        TrainQLearning,
        make_q_learning,
    ),
    "qr-dqn": _pure("Q-learning of quantiles", _DISCRETE, TrainQRDQN, make_q_learning),
    "c51": _pure("Q-learning of bins over a range", _DISCRETE, TrainC51, make_q_learning),
    "sac": _pure("Soft actor-critic", f"{_BOX} or {_DISCRETE}", TrainSAC, make_sac),
    "td3": _pure("Twin delayed deterministic policy gradient", _BOX, TrainTD3, make_td3),
    "ddpg": _pure("Deep deterministic policy gradient", _BOX, TrainDDPG, make_td3),
    "ppo": _pure("Proximal policy optimization", "any actions", TrainPPO, make_ppo),
    "a2c": _pure("Advantage actor-critic", "any actions", TrainA2C, make_ppo),
    "reinforce": _pure("REINFORCE with a baseline", "any actions", TrainReinforce, make_ppo),
}


def algorithm_of(run: Run) -> Algorithm:
    """That of the run's config; ``UnknownAlgorithmError`` if it is none of these."""
    config = run.read_config()
    name = config.get("algorithm") if isinstance(config, dict) else None
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise UnknownAlgorithmError(f"{run.path} was trained with the algorithm {name!r}; known are: {known}.")
    return ALGORITHMS[name]
