"""``triax train``: an agent, a Gymnasium loop, and a run directory."""

import math
import time
from pathlib import Path
from typing import Any

import gymnasium

from triax.cli.algorithms import ALGORITHMS
from triax.cli.commands import TrainDQN
from triax.cli.environments import make_env
from triax.loops import Progressed, evaluate, run_gymnasium
from triax.runs import CleanInterrupt, Progress, Run
from triax.wrappers import TrainMonitor


def train(command: TrainDQN) -> int:
    """Train, leave a run directory, and print where; the exit code."""
    with CleanInterrupt() as interrupt:  # from the start: an early Ctrl-C also leaves a whole run
        env = TrainMonitor(make_env(command.env))
        agent = ALGORITHMS[command.algorithm].make_agent(command, env)
        began = time.monotonic()
        with _create_run(command) as run, Evaluator(command, agent, run) as evaluator:
            progress = Progress(
                command.total_steps,
                description=f"{command.algorithm} {command.env}",
                return_label="average return while exploring",
            )
            hooks = [
                EpisodeLog(env, run),
                evaluator,
                lambda p: progress.update(p.step, env.avg_G if env.ep > 1 else None),
                lambda p: interrupt.requested,
            ]
            with progress:
                steps = run_gymnasium(agent, env, command.total_steps, hooks=hooks, seed=command.seed)
            evaluator.save_last(steps)
            curve = _write_curve(run, command)
        env.close()
    _report(run, evaluator, steps, time.monotonic() - began, curve, stopped=interrupt.requested)
    return 130 if interrupt.requested else 0


def _create_run(command: TrainDQN) -> Run:
    path = command.run_dir or Path("runs") / f"{command.algorithm}-{_as_file_name(command.env)}-{command.seed}"
    try:
        return Run.create(path, command, overwrite=command.overwrite)
    except FileExistsError as error:
        if not path.is_dir():
            raise
        hint = "Try another --run-dir, or --overwrite to replace an earlier run there."
        raise FileExistsError(f"{path} is not empty. {hint}") from error


def _as_file_name(env: str) -> str:
    return env.replace("/", "_").replace(":", "_")


class EpisodeLog:
    """Writes the return and the averaged metrics of each episode to the run."""

    def __init__(self, env: TrainMonitor, run: Run) -> None:
        self._env, self._run = env, run

    def __call__(self, progressed: Progressed) -> None:
        """Record metrics; at the end of an episode write them down."""
        if progressed.metrics is not None:
            self._env.record_metrics(progressed.metrics)
        if progressed.episode_ended:
            episode = {
                "episode/return": self._env.G,
                "episode/steps": self._env.t,
                "episode/avg_return": self._env.avg_G,
            }
            self._run.log(progressed.step, {**episode, **self._env.get_metrics()})


class Evaluator:
    """Evaluates the greedy policy now and then, keeps the best weights, and stops when the goal is reached."""

    def __init__(self, command: TrainDQN, agent: Any, run: Run) -> None:
        self._command, self._agent, self._run = command, agent, run
        self._env: gymnasium.Env = make_env(command.env)
        threshold = self._env.spec.reward_threshold if self._env.spec else None
        goal = command.stop_at if command.stop_at is not None else threshold
        self.goal: float = math.inf if goal is None else goal
        self.best: float = -math.inf

    @property
    def num_episodes(self) -> int:
        """Episodes of each evaluation."""
        return self._command.eval_episodes

    def __enter__(self) -> "Evaluator":
        return self

    def __exit__(self, *exception: object) -> None:
        self._env.close()

    def __call__(self, progressed: Progressed) -> bool:
        """Evaluate when it is time; ``True`` once the goal is reached."""
        if progressed.step % self._command.eval_every and progressed.step != self._command.total_steps:
            return False
        returns = evaluate(
            self._agent.act_greedily,
            self._env,
            num_episodes=self._command.eval_episodes,
            seed=self._command.seed,
        )
        mean = float(returns.mean())
        self._run.log(
            progressed.step,
            {"eval/episode_reward/mean": mean, "eval/episode_reward/std": float(returns.std())},
        )
        if mean > self.best:
            self.best = mean
            self._run.best.save(progressed.step, self._agent.weights(), {"eval_mean": mean})
        return mean >= self.goal

    def save_last(self, step: int) -> None:
        """The weights at the end of training."""
        self._run.checkpoints.save(step, self._agent.weights())


def _write_curve(run: Run, command: TrainDQN) -> Path | None:
    """The learning curve, if an episode or an evaluation has ended."""
    if not {"episode/return", "eval/episode_reward/mean"} & set(run.read_metrics().names()):
        return None
    return run.write_learning_curve(title=f"{command.algorithm} on {command.env}, seed {command.seed}")


def _report(run: Run, evaluator: Evaluator, steps: int, seconds: float, curve: Path | None, *, stopped: bool) -> None:
    print(f"{'Stopped' if stopped else 'Done'} after {steps:,} steps in {seconds:.0f} s.")
    if math.isfinite(evaluator.best):
        goal = f" ({_about_goal(evaluator)})" if math.isfinite(evaluator.goal) else ""
        episodes = evaluator.num_episodes
        print(f"Best mean return over {episodes} evaluation episodes: {evaluator.best:.1f}{goal}")
    print(f"Run: {run.path}  ({f'curve: {curve.name}; ' if curve else ''}evaluate with: triax evaluate {run.path})")


def _about_goal(evaluator: Evaluator) -> str:
    outcome = "reached" if evaluator.best >= evaluator.goal else "not reached"
    return f"goal of {evaluator.goal:g} {outcome}"
