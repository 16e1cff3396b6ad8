"""What all trainings do: learn in compiled calls, and between them whatever is due."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array

from triax.agents.interface import Agent
from triax.agents.logging_level import LoggingLevel
from triax.agents.ppo_network import Networks, PPONetwork
from triax.algorithms.checkpointing import CheckpointCallback, SavedState
from triax.algorithms.config import DistillationTrainConfig, TrainConfig
from triax.algorithms.measures import RolloutMeasure
from triax.algorithms.observers import Camera, Evaluator
from triax.algorithms.results import TrainingState, VideoData, resume
from triax.core.keys import fold_name, make_key
from triax.core.modules import write_into
from triax.core.sharding import Devices, first_replica
from triax.core.trees import any_deleted, copy_arrays
from triax.loops.device_on_policy import DeviceOnPolicy, OnPolicyConfig
from triax.networks import StatefulModule

MOST_ITERATIONS = 128
"""Of one compiled call."""
SECONDS_PER_CALL = 0.5
"""About how long a compiled call takes: so soon logs are written and Ctrl-C is heard."""


@dataclass(frozen=True)
class Callbacks:
    """Whom a training tells what."""

    log_fn: Callable[[dict[str, Any], int], Any] | None = None
    """``(flat metrics, steps)``, for every iteration."""
    video_fn: Callable[[VideoData], Any] | None = None
    """For every video."""
    checkpoint_fn: CheckpointCallback | None = None
    """``(training_state, step)``; the state is a copy, to keep as long as one likes."""

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return any((self.log_fn, self.video_fn, self.checkpoint_fn))


class Call:
    """The iterations of one compiled call: what they measured, fetched when it is read."""

    def __init__(self, rows: dict[str, Array], count: int, steps_before: int, steps_per_iteration: int) -> None:
        self._rows, self.count = rows, count
        self._steps_before, self._steps_per_iteration = steps_before, steps_per_iteration

    @functools.cached_property
    def _on_host(self) -> dict[str, np.ndarray]:
        return jax.device_get(self._rows)

    def steps(self, i: int) -> int:
        """Of the whole training, after the ``i``-th iteration of the call."""
        return self._steps_before + (i + 1) * self._steps_per_iteration

    def metrics(self, i: int) -> dict[str, Any]:
        """Of the ``i``-th iteration; returns and lengths of episodes only if some ended in it."""
        found: dict[str, Any] = {name: float(row[i]) for name, row in self._on_host.items()}
        if not found["episodes"]:
            found = {name: value for name, value in found.items() if name not in ("return", "length")}
        return {"total_steps": self.steps(i), **found}


class Training:
    """A training: make it, then :meth:`run` it once.

    Args:
        env: a JAX environment.
        agent: one whose state has ``networks`` and ``optimizer_state``.
        networks: the user's ``StatefulModule``, which is trained in place; its mode and its random streams stay.
        config: all numbers.
        callbacks: whom to tell.
        eval_env: where evaluations and videos take place; ``None`` for ``env``.
        network_family: what the network's metrics are filed under.
        devices: over which environments are split; see :class:`~triax.loops.DeviceOnPolicy`.
    """

    def __init__(
        self,
        env: Any,
        agent: Agent,
        networks: Any,
        config: TrainConfig | DistillationTrainConfig,
        callbacks: Callbacks,
        *,
        eval_env: Any = None,
        network_family: str = "net",
        devices: Devices = None,
    ) -> None:
        if not isinstance(networks, StatefulModule):
            raise TypeError(
                f"{type(config).__name__}: networks must be a StatefulModule, whose samples can be told again in "
                f"replay; got {type(networks).__name__}. Try PPOAdapter(action, value)."
            )
        learning = config.learning
        self._config, self._callbacks = config, callbacks
        self._throughput = LoggingLevel.THROUGHPUT in learning.logging_level
        network, _ = PPONetwork.of(networks)
        eval_env = env if eval_env is None else eval_env
        self._evaluator = Evaluator(network, eval_env, config.eval) if config.eval.enabled else None
        self._camera = Camera(network, eval_env, config.video, callbacks.video_fn) if config.video.enabled else None
        measure = RolloutMeasure.of(learning.logging_level, learning.logging_percentiles, network_family)
        size = OnPolicyConfig(learning.n_envs, learning.rollout_length)
        self._loop = DeviceOnPolicy(env, agent, size, measure=measure, most=MOST_ITERATIONS, devices=devices)
        root = make_key(config.seed)
        first = self._loop.init(fold_name(root, "training"), agent.init(fold_name(root, "agent")))
        self._state = TrainingState(networks, first, root)
        self._pace = 1
        self._call: Call | None = None
        self._besides: dict[str, Any] = {}

    def run(self, initial_state: TrainingState | SavedState | None) -> dict[str, Any]:
        """The fields of a :class:`TrainResult`. A resumed training goes on as if it had not been interrupted."""
        if initial_state is not None:
            state = resume(type(self._config).__name__, initial_state, self._state)
            self._state = replace(state, loop=self._loop.place(state.loop))
        try:
            if initial_state is None:
                self._before_the_first()
            while self._state.steps_taken < self._config.learning.total_steps:
                self._advance()
        finally:
            self._write_back()
        state, last = self._state, self._call
        return {
            "training_state": state,
            "final_metrics": (last.metrics(last.count - 1) if last else {}) | self._besides,
            "eval_history": [dict(entry) for entry in state.eval_history],
            "total_steps": state.steps_taken,
            "total_iterations": state.iterations,
        }

    # ------------------------------------------------------------------ one compiled call

    def _before_the_first(self) -> None:
        self._besides = self._observe(None)
        if self._besides and self._callbacks.log_fn is not None:
            self._callbacks.log_fn({"total_steps": self._state.steps_taken, **self._besides}, self._state.steps_taken)

    def _advance(self) -> None:
        """Some iterations, which end where something is due."""
        before, per_iteration = self._state, self._config.learning.steps_per_iteration
        count = min(self._pace, self._iterations_left())
        start = time.perf_counter()
        loop, rows = self._loop.launch(before.loop, count)
        self._call = call = Call(rows, count, before.steps_taken, per_iteration)
        self._state = replace(
            before, loop=loop, steps_taken=call.steps(count - 1), iterations=before.iterations + count
        )
        jax.block_until_ready(loop.iteration)
        seconds = time.perf_counter() - start
        self._keep_pace(count, seconds)
        if self._callbacks.any:
            self._write_back()
        speed = {"throughput/train_sps": count * per_iteration / seconds} if self._throughput else {}
        self._log(call, range(count - 1), speed)
        self._besides = speed | self._observe(before.steps_taken)
        self._log(call, range(count - 1, count), self._besides)

    def _iterations_left(self) -> int:
        """Until the next thing is due, or the end."""
        config, steps = self._config, self._state.steps_taken
        everies = (
            config.eval.every_steps if self._evaluator else 0,
            config.video.every_steps if self._camera else 0,
            config.checkpoint_every_steps if self._callbacks.checkpoint_fn else 0,
        )
        ends = [(steps // every + 1) * every for every in everies if every] + [config.learning.total_steps]
        return -(-(min(ends) - steps) // config.learning.steps_per_iteration)

    def _keep_pace(self, count: int, seconds: float) -> None:
        """More iterations in a call that was quick, fewer in one that was slow; the first one compiles."""
        if seconds < SECONDS_PER_CALL / 2 and count == self._pace:
            self._pace = min(2 * self._pace, MOST_ITERATIONS)
        elif seconds > SECONDS_PER_CALL * 2:
            self._pace = max(self._pace // 2, 1)

    # ------------------------------------------------------------------ between calls

    def _observe(self, before: int | None) -> dict[str, Any]:
        """Evaluation, video and checkpoint, where a multiple was crossed since ``before``, or at the start."""
        config, found = self._config, {}
        if self._evaluator is not None and self._is_due(config.eval.every_steps, before):
            found |= self._evaluate(self._evaluator)
        if self._camera is not None and self._is_due(config.video.every_steps, before):
            found |= self._film(self._camera)
        save = self._callbacks.checkpoint_fn
        if save is not None and self._is_due(config.checkpoint_every_steps, before):
            save(self._state.kept(), self._state.steps_taken)
        return found

    def _is_due(self, every: int, before: int | None) -> bool:
        return before is None or (every > 0 and self._state.steps_taken // every > before // every)

    def _evaluate(self, evaluator: Evaluator) -> dict[str, float]:
        state = self._state
        metrics, speed = evaluator(self._networks, state.rng_key, state.iterations)
        entry = {"step": state.steps_taken, **metrics}
        self._state = replace(state, eval_history=(*state.eval_history, entry))
        return metrics | ({"throughput/eval_sps": speed} if self._throughput else {})

    def _film(self, camera: Camera) -> dict[str, float]:
        state = self._state
        speed = camera(self._networks, state.rng_key, state.iterations, state.steps_taken)
        return {"throughput/video_sps": speed} if self._throughput else {}

    def _log(self, call: Call, iterations: range, besides: dict[str, Any]) -> None:
        log_fn = self._callbacks.log_fn
        if log_fn is not None:
            for i in iterations:
                log_fn(call.metrics(i) | besides, call.steps(i))

    @property
    def _networks(self) -> Networks:
        """What is learned, on one device."""
        return first_replica(self._state.loop.agent.networks)

    def _write_back(self) -> None:
        """The weights and statistics so far into the user's module."""
        networks = self._networks
        if not any_deleted(networks):  # an interrupt at the very moment of a call
            write_into(self._state.networks, *copy_arrays(networks))


Config = TypeVar("Config", TrainConfig, DistillationTrainConfig)


def with_overrides(who: str, config: Any, kind: type[Config], total_steps: int | None, seed: int | None) -> Config:
    """The config with what was given besides; ``TypeError`` for one of another kind."""
    part = fields(kind)[0]
    if not isinstance(config, kind):
        raise TypeError(
            f"{who}: config must be a {kind.__name__}; got {type(config).__name__}. Try "
            f"{kind.__name__}({part.name}=...)."
        )
    if total_steps is not None:
        config = replace(config, **{part.name: replace(config.learning, total_steps=total_steps)})
    return config if seed is None else replace(config, seed=seed)
