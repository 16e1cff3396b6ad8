"""Loops on the device as :class:`~triax.cli.loop_training.LoopTraining` drives them: some iterations in a call."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from triax.agents import Agent
from triax.cli.device_evaluation import DeviceEvaluation
from triax.cli.train_commands import TrainOffPolicy, TrainOnPolicy, TrainSideBySide
from triax.core.keys import Key, fold_name
from triax.core.leaves import named_leaves, restore_tree
from triax.core.sharding import first_replica
from triax.loops import DeviceOffPolicy, DeviceOnPolicy

Metrics = dict[str, Any]
"""Numbers ``[]``, or ``[num_seeds]``."""


class DeviceLoop:
    """One agent, or one for each seed, in a JAX environment. Its whole state can be saved.

    ``advance`` makes as many iterations as ``log_every`` asks for; so a resumed training makes the same calls as an
    unbroken one.
    """

    keeps_environments = True

    def __init__(self, command: TrainSideBySide, env: Any, agent: Agent) -> None:
        self._command = command
        self.num_seeds = command.seeds if command.seeds > 1 else None
        self.goal: float | None = None
        self._key = self._keys(command.seed)
        before, each, self._stride = _counts(command)
        self._begun_at, self._per_call = before, each * self._stride
        self._made_of = env, agent, self.num_seeds, self._stride
        self._loop = _make_loop(command, *self._made_of)
        self._evaluate = DeviceEvaluation(agent, env, command.eval_episodes, self.num_seeds)
        self._state: Any = None
        self._calls = 0

    @property
    def step(self) -> int:
        """Steps of all environments of one agent."""
        return 0 if self._state is None else self._begun_at + self._calls * self._per_call

    def begin(self, should_stop: Callable[[], bool]) -> None:
        """With new weights, unless a state was restored."""
        if self._state is None:
            self._state = self._loop.init(self._key)

    def advance(self, until: int, tick: Callable[[int], bool]) -> Metrics:
        """Always as many iterations, whatever ``until``, since each number would be compiled; what they measured."""
        self._state, metrics = self._loop.run(self._state, self._stride)
        self._calls += 1
        tick(self.step)
        return _means(jax.device_get(metrics), self.num_seeds)

    def agent_state(self) -> PyTree:
        """Of the agent, on one device; leaves ``[num_seeds, ...]`` if there are several."""
        return first_replica(self._state.agent)

    def evaluate(self) -> np.ndarray:
        """Returns of greedy episodes, ``[(num_seeds,) episodes]``."""
        names = functools.partial(fold_name, name="evaluation")
        key = names(self._key) if self.num_seeds is None else jax.vmap(names)(self._key)
        return self._evaluate(self.agent_state(), key)

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes."""
        return {"scalars": {"calls": self._calls}, "arrays": named_leaves(self._state)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there: bit for bit, up to rounding on another number of devices."""
        shapes = _make_loop(dataclasses.replace(self._command, devices=1), *self._made_of).init
        like = jax.eval_shape(shapes, self._key)
        self._state = self._loop.place(restore_tree(like, state["arrays"], "state"))
        self._calls = state["scalars"]["calls"]

    def close(self) -> None:
        """Nothing is open."""

    def _keys(self, seed: int) -> Key:
        if self.num_seeds is None:
            return jax.random.key(seed)
        return jax.vmap(jax.random.key)(seed + jnp.arange(self.num_seeds, dtype=jnp.uint32))


@functools.singledispatch
def _counts(command: Any) -> tuple[int, int, int]:
    """Steps before the first iteration, steps of each, and how many are made in a call."""
    raise TypeError(f"no loop for {command}.")


@_counts.register
def _(command: TrainOnPolicy) -> tuple[int, int, int]:
    each = command.num_envs * command.rollout_length
    return 0, each, _stride(command, each)


@_counts.register
def _(command: TrainOffPolicy) -> tuple[int, int, int]:
    each = command.num_envs * command.steps_per_iteration
    return command.first_update, each, _stride(command, each)


def _stride(command: TrainSideBySide, each: int) -> int:
    return max(1, min(command.log_every, command.eval_every) // each)


@functools.singledispatch
def _make_loop(command: Any, env: Any, agent: Any, num_seeds: int | None, stride: int) -> Any:
    raise TypeError(f"no loop for {command}.")


@_make_loop.register
def _(command: TrainOnPolicy, env: Any, agent: Any, num_seeds: int | None, stride: int) -> DeviceOnPolicy:
    return DeviceOnPolicy(env, agent, command.gathering, num_seeds=num_seeds, most=stride, devices=command.devices)


@_make_loop.register
def _(command: TrainOffPolicy, env: Any, agent: Any, num_seeds: int | None, stride: int) -> DeviceOffPolicy:
    return DeviceOffPolicy(env, agent, command.gathering, num_seeds=num_seeds, devices=command.devices)


def _means(metrics: Metrics, num_seeds: int | None) -> Metrics:
    """Over the iterations of a call, where metrics are told of each; of episodes, over those that ended."""
    if np.ndim(metrics["episodes"]) == (0 if num_seeds is None else 1):
        return metrics
    episodes = metrics["episodes"]
    count = np.sum(episodes, axis=0)
    found = {name: np.mean(rows, axis=0) for name, rows in metrics.items()}
    for name in ("return", "length"):
        total = np.sum(np.where(episodes > 0, metrics[name], 0.0) * episodes, axis=0)
        found[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return {**found, "episodes": count}
