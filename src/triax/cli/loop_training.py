"""Training of pure agents, on the device, in Gymnasium, in many processes: advance, log, evaluate, save."""

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from jaxtyping import PyTree

from triax.cli.device_loops import DeviceLoop
from triax.cli.distributed_loop import DistributedLoop
from triax.cli.environments import JAX_EXAMPLES, EnvironmentNameError, is_on_device, make_any_env
from triax.cli.seed_runs import SeedRuns
from triax.cli.train_commands import TrainSideBySide
from triax.cli.training import Outcome, Plan
from triax.cli.vector_loops import VectorLoop
from triax.runs import Progress, Resumable, Run, SavingRhythm, save_state


class Loop(Resumable, Protocol):
    """What a training asks of a loop, wherever its environments are."""

    keeps_environments: bool
    """Whether its state has those of the environments."""
    goal: float | None
    """The reward threshold of the environment."""

    @property
    def step(self) -> int:
        """Steps done so far."""
        ...

    def begin(self, should_stop: Callable[[], bool]) -> None:
        """With new weights, unless a state was loaded.

        What takes long asks meanwhile whether it should stop, and raises ``KeyboardInterrupt`` if so.
        """
        ...

    def advance(self, until: int, tick: Callable[[int], bool]) -> dict[str, Any]:
        """Some steps, up to ``until`` at most where that can be, and what they measured.

        ``tick`` is told the step and may stop it.
        """
        ...

    def agent_state(self) -> PyTree:
        """Of the agent, or of those of all seeds."""
        ...

    def evaluate(self) -> np.ndarray:
        """Returns of greedy episodes, ``[(num_seeds,) episodes]``."""
        ...

    def close(self) -> None:
        """Closes environments."""
        ...


class LoopTraining:
    """A training that is as it was when its state was saved: see :class:`~triax.cli.training.Training`.

    Args:
        command: what to train.
        make_agent: makes the pure agent for ``(command, env)``.

    Raises:
        EnvironmentNameError: no such environment, several seeds of a Gymnasium environment, or several processes with
            a JAX environment.
    """

    def __init__(self, command: TrainSideBySide, make_agent: Callable[[Any, Any], Any]) -> None:
        self._command = command
        env = make_any_env(command.env)
        if command.devices > 1 and not is_on_device(env):
            raise EnvironmentNameError(
                f"--devices {command.devices} needs a JAX environment; {command.env} is one of Gymnasium, whose steps"
                f" are taken on the host. Try {JAX_EXAMPLES}, or {command.env} without --devices."
            )
        if command.seeds > 1 and not is_on_device(env):
            raise EnvironmentNameError(
                f"--seeds {command.seeds} needs a JAX environment; {command.env} is one of Gymnasium. Try"
                f" {JAX_EXAMPLES}, or train its seeds one by one, with --seed."
            )
        self._loop = _make_loop(command, env, make_agent)

    @property
    def resumes_in_new_episodes(self) -> bool:
        """Of Gymnasium environments."""
        return not self._loop.keeps_environments

    @property
    def step(self) -> int:
        """Steps done so far."""
        return self._loop.step

    def run(self, run: Run, plan: Plan, should_stop: Callable[[], bool]) -> Outcome:
        """Train, and save a state now and then: see :class:`~triax.runs.SavingRhythm`."""
        loop, command = self._loop, self._command
        rhythm = SavingRhythm(command.checkpoint_every)
        stop_at = loop.goal if plan.stop_at is None else plan.stop_at
        goal, reached = math.inf if stop_at is None else stop_at, False
        progress = Progress(plan.total_steps, start=self.step, description=f"{command.algorithm} {command.env}")
        with SeedRuns(run, command, self.step, plan) as runs, progress:
            progress.compiled = False
            loop.begin(should_stop)
            while self.step < plan.total_steps and not (reached or should_stop()):
                before = self.step
                metrics = loop.advance(plan.total_steps, lambda step: progress.update(step) or should_stop())
                runs.log(self.step, metrics)
                progress.update(self.step, _mean_return(metrics))
                progress.compiled = self.step > command.first_update
                if self._is_due(before, plan):
                    reached = runs.evaluated(self.step, loop.evaluate(), loop.agent_state()) >= goal
                if rhythm.is_due():
                    rhythm.run(lambda: self._save(runs))
            self._save(runs)
            runs.finish(self.step, self.weights(), stopped=self.step < plan.total_steps and not reached)
        return Outcome(self.step, goal, runs.best, command.eval_episodes, reached)

    def weights(self) -> PyTree:
        """The agent's whole state, from which it acts; of all seeds."""
        return self._loop.agent_state()

    def state_dict(self) -> dict[str, Any]:
        """That of the loop."""
        return self._loop.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._loop.load_state_dict(state)

    def close(self) -> None:
        """Closes environments."""
        self._loop.close()

    def _is_due(self, before: int, plan: Plan) -> bool:
        every = self._command.eval_every
        return self.step // every > before // every or self.step >= plan.total_steps

    def _save(self, runs: SeedRuns) -> None:
        """What has been logged is on the disk before the state that follows it."""
        runs.flush()
        runs.run.checkpoints.save(self.step, self.weights())
        save_state(runs.run.states, self.step, self)
        runs.run.record_progress(self.step)


def _make_loop(command: Any, env: Any, make_agent: Callable[[Any, Any], Any]) -> Loop:
    if not command.workers:
        make_loop = DeviceLoop if is_on_device(env) else VectorLoop
        return make_loop(command, env, make_agent(command, env))
    if is_on_device(env):
        raise EnvironmentNameError(
            f"--workers {command.workers} needs a Gymnasium environment; {command.env} is a JAX one, which --num-envs"
            " runs side by side on the device."
        )
    return DistributedLoop(command, env, make_agent)


def _mean_return(metrics: dict[str, Any]) -> float | None:
    """Of the episodes that ended, if any did."""
    found = float(np.mean(metrics["return"])) if "return" in metrics else math.nan
    return found if math.isfinite(found) else None
