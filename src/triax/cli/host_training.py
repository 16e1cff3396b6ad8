"""Training on the host: an agent that steps one Gymnasium environment, evaluated and saved now and then."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
from jaxtyping import PyTree

from triax.cli.environments import make_env
from triax.cli.evaluation import EvaluationLog
from triax.cli.train_commands import TrainDQN
from triax.cli.training import Outcome, Plan
from triax.loops import Progressed, evaluate, run_gymnasium
from triax.runs import Progress, Run, SavingRhythm, save_state
from triax.wrappers import TrainMonitor


class HostTraining:
    """A training whose state can be saved where an episode has ended: see :class:`~triax.cli.training.Training`.

    The state of a Gymnasium environment cannot be saved; how an episode begins follows from the seed and its number.

    Args:
        command: what to train.
        make_agent: makes the agent for ``(command, env)``.
    """

    resumes_in_new_episodes = False

    def __init__(self, command: TrainDQN, make_agent: Callable[[Any, gymnasium.Env], Any]) -> None:
        self._command = command
        self._env = TrainMonitor(make_env(command.env))
        self._agent = make_agent(command, self._env)
        self.step, self._episodes = 0, 0

    def run(self, run: Run, plan: Plan, should_stop: Callable[[], bool]) -> Outcome:
        """Train, and save a state now and then: see :class:`~triax.runs.SavingRhythm`."""
        rhythm = SavingRhythm(self._command.checkpoint_every)

        def keep_state(progressed: Progressed) -> None:
            if not progressed.episode_ended:
                return
            self.step, self._episodes = progressed.step, progressed.episodes
            if rhythm.is_due() or should_stop() or progressed.step == plan.total_steps:
                rhythm.run(lambda: self._save(run))

        progress = Progress(
            plan.total_steps,
            start=self.step,
            description=f"{self._command.algorithm} {self._command.env}",
            return_label="average return while exploring",
        )
        with Evaluator(self._command, self._agent, run, plan) as evaluator:
            hooks = [
                EpisodeLog(self._env, run),
                evaluator,
                keep_state,
                _show_in(progress, self._env),
                lambda p: should_stop(),
            ]
            start = self.step, self._episodes
            with progress:
                self.step = run_gymnasium(
                    self._agent, self._env, plan.total_steps, hooks=hooks, seed=self._command.seed, start=start
                )
        return Outcome(
            self.step, evaluator.goal, evaluator.best, self._command.eval_episodes, evaluator.has_reached_goal
        )

    def weights(self) -> PyTree:
        """Those of the agent."""
        return self._agent.weights()

    def state_dict(self) -> dict[str, Any]:
        """That of the agent, and what has been counted."""
        agent = self._agent.state_dict()
        counted = {"step": self.step, "episodes": self._episodes, "monitor": self._env.get_counters()}
        return {"scalars": {**counted, "agent": agent["scalars"]}, "arrays": agent["arrays"]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        scalars = state["scalars"]
        self._agent.load_state_dict({"scalars": scalars["agent"], "arrays": state["arrays"]})
        self._env.set_counters(scalars["monitor"])
        self.step, self._episodes = scalars["step"], scalars["episodes"]

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

    def _save(self, run: Run) -> None:
        """What has been logged is on the disk before the state that follows it."""
        run.flush()
        run.checkpoints.save(self.step, self.weights())
        save_state(run.states, self.step, self)
        run.record_progress(self.step)


def _show_in(progress: Progress, env: TrainMonitor) -> Callable[[Progressed], None]:
    progress.compiled = False  # until the first update was made

    def show(progressed: Progressed) -> None:
        progress.update(progressed.step, env.avg_G if env.ep > 1 else None)
        progress.compiled = progress.compiled or progressed.metrics is not None

    return show


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

    def __init__(self, command: TrainDQN, agent: Any, run: Run, plan: Plan) -> None:
        self._command, self._agent, self._total_steps = command, agent, plan.total_steps
        self._env: gymnasium.Env = make_env(command.env)
        threshold = self._env.spec.reward_threshold if self._env.spec else None
        goal = plan.stop_at if plan.stop_at is not None else threshold
        self.goal: float = math.inf if goal is None else goal
        self._log = EvaluationLog(run)
        self.has_reached_goal = False

    @property
    def best(self) -> float:
        """The best mean return so far."""
        return self._log.best

    def __enter__(self) -> "Evaluator":
        return self

    def __exit__(self, *exception: object) -> None:
        self._env.close()

    def __call__(self, progressed: Progressed) -> bool:
        """Evaluate when it is time; ``True`` once the goal is reached."""
        if progressed.step % self._command.eval_every and progressed.step != self._total_steps:
            return False
        returns = evaluate(
            self._agent.act_greedily,
            self._env,
            num_episodes=self._command.eval_episodes,
            seed=self._command.seed,
        )
        mean = self._log.add(progressed.step, returns, self._agent.weights)
        self.has_reached_goal = mean >= self.goal
        return self.has_reached_goal
