"""Loops in Gymnasium environments side by side, as :class:`~triax.cli.loop_training.LoopTraining` drives them."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import PyTree

from triax.agents import Agent
from triax.cli.environments import make_env
from triax.cli.train_commands import TrainOffPolicy, TrainOnPolicy, TrainSideBySide
from triax.core.keys import fold_name
from triax.core.leaves import named_leaves, restore_tree
from triax.loops import Progressed, VectorOffPolicy, VectorOnPolicy, evaluate_agent

Metrics = dict[str, Any]

_EVALUATING = 8
"""Environments that an evaluation plays in, at most."""


class VectorLoop:
    """An agent in Gymnasium environments side by side. Their states cannot be saved: it resumes in new episodes."""

    keeps_environments = False

    def __init__(self, command: TrainSideBySide, env: Any, agent: Agent) -> None:
        self.goal: float | None = env.spec.reward_threshold if env.spec else None
        self._command, self._agent = command, agent
        self._key = jax.random.key(command.seed)
        self._envs = _side_by_side(command.env, command.num_envs)
        self._evaluating = _side_by_side(command.env, min(_EVALUATING, command.eval_episodes))
        self._loop = _make_loop(command, self._envs, agent)
        self._saved: dict[str, Any] | None = None
        self._begun = False

    @property
    def step(self) -> int:
        """Steps that environments took, each counted."""
        return self._loop.state.taken if self._begun else 0

    def begin(self, should_stop: Callable[[], bool]) -> None:
        """With new weights, unless a state was restored."""
        if not self._begun:
            self._loop.init(self._key)
            self._begun = True

    def advance(self, until: int, tick: Callable[[int], bool]) -> Metrics:
        """Steps until it is time to log, or ``until``, in whole rollouts, or ``tick`` stops it.

        Means of what they measured.
        """
        measured: list[Metrics] = []

        def hook(progressed: Progressed) -> bool:
            if progressed.metrics is not None:
                measured.append(progressed.metrics)
            return tick(progressed.step)

        every = min(self._command.log_every, self._command.eval_every)
        self._loop.run(min((self.step // every + 1) * every, until), hooks=[hook])
        return _report(self._loop, jax.device_get(measured))

    def agent_state(self) -> PyTree:
        """Of the agent."""
        return self._loop.state.learner.agent

    def evaluate(self) -> np.ndarray:
        """Returns of greedy episodes."""
        key, count = fold_name(self._key, "evaluation"), self._command.eval_episodes
        return evaluate_agent(self._agent, self.agent_state(), self._evaluating, num_episodes=count, key=key).returns

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes but the environments."""
        return {"scalars": {}, "arrays": named_leaves(self._loop.state)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there in new episodes."""
        self._loop.init(self._key)
        self._loop.restore(restore_tree(self._loop.state, state["arrays"], "state"))
        self._begun = True

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()
        self._evaluating.close()


def _side_by_side(name: str, count: int) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: make_env(name)] * count, autoreset_mode=AutoresetMode.SAME_STEP)


@functools.singledispatch
def _make_loop(command: Any, envs: SyncVectorEnv, agent: Any) -> Any:
    raise TypeError(f"no loop for {command}.")


@_make_loop.register
def _(command: TrainOnPolicy, envs: SyncVectorEnv, agent: Any) -> VectorOnPolicy:
    return VectorOnPolicy(envs, agent, command.gathering)


@_make_loop.register
def _(command: TrainOffPolicy, envs: SyncVectorEnv, agent: Any) -> VectorOffPolicy:
    return VectorOffPolicy(envs, agent, command.gathering)


@functools.singledispatch
def _report(loop: Any, measured: list[Metrics]) -> Metrics:
    """Means of what was measured, and of the episodes that ended."""
    raise TypeError(f"no metrics of {loop}.")


@_report.register
def _(loop: VectorOffPolicy, measured: list[Metrics]) -> Metrics:
    return _means(measured) | jax.device_get(loop.report())


@_report.register
def _(loop: VectorOnPolicy, measured: list[Metrics]) -> Metrics:
    counts = [row["episodes"] for row in measured]
    count = np.sum(counts)
    found = _means(measured) | {"episodes": count, "return": np.nan, "length": np.nan}
    if count:
        ended = [row for row in measured if row["episodes"] > 0]
        weights = [row["episodes"] for row in ended]
        found |= {name: np.average([row[name] for row in ended], weights=weights) for name in ("return", "length")}
    return found


def _means(measured: list[Metrics]) -> Metrics:
    return {name: np.mean([row[name] for row in measured]) for name in (measured[0] if measured else ())}
