"""``triax resume``: a run goes on from its last state, as if it had never stopped."""

import dataclasses
import sys
from typing import Any

from triax.cli.algorithms import algorithm_of
from triax.cli.commands import ResumeRun
from triax.cli.sessions import complete
from triax.cli.train_commands import TrainCommand, TrainSideBySide
from triax.cli.training import Plan
from triax.core.errors import TriaxError
from triax.runs import CleanInterrupt, Run, RunRecord, installed_versions, load_last_state, require_unused


class NothingToResumeError(TriaxError, ValueError):
    """A run has done already what it is asked to do."""


def resume(command: ResumeRun) -> int:
    """Train on to the end, and print where; the exit code."""
    with CleanInterrupt() as interrupt:
        run = Run.open(command.run)
        _require_whole(run)
        require_unused(run.path)
        algorithm, record = algorithm_of(run), run.record
        config = _on_devices(run.load_config(algorithm.command), command.devices)
        config = _in_processes(config, workers=command.workers, address=command.address)
        plan = _plan(command, config, record, run)
        training = algorithm.make_training(config)
        last = load_last_state(run.states, skipped=lambda error: _say(f"{error} Taking the state before."))
        if last is not None:
            training.load_state_dict(last[1])
        _tell_of_versions(record)
        print(f"{run.path}: goes on from step {training.step:,} to {plan.total_steps:,}.", flush=True)
        if last is not None and training.resumes_in_new_episodes:
            _say(
                "Gymnasium environments side by side begin new episodes: numbers differ from those of an unbroken run."
            )
        with Run.resume(run.path, training.step) as run:
            return complete(training, run, plan, interrupt, config)


def _on_devices(config: TrainCommand, devices: int | None) -> TrainCommand:
    """The config with as many devices as are asked for."""
    if devices is None:
        return config
    if not isinstance(config, TrainSideBySide):
        raise ValueError(f"--devices {devices} is for agents in JAX environments; {config.algorithm} runs on the host.")
    return dataclasses.replace(config, devices=devices)


def _in_processes(config: TrainCommand, **asked: Any) -> TrainCommand:
    """The config with as many workers as are asked for, at that address."""
    changes = {name: value for name, value in asked.items() if value is not None}
    if not changes:
        return config
    if not config.workers:
        options = " ".join(f"--{name} {value}" for name, value in changes.items())
        raise ValueError(f"{options} is for runs that were begun with --workers; this one is one process.")
    processes = dataclasses.replace(getattr(config, "processes"), **changes)  # noqa: B009  # where workers are, it is
    return dataclasses.replace(config, processes=processes)


def _require_whole(run: Run) -> None:
    if run.whole is not None:
        raise NothingToResumeError(
            f"{run.path} is one seed of {run.whole}. To go on with all: triax resume {run.whole}"
        )


def _plan(command: ResumeRun, config: TrainCommand, record: RunRecord, run: Run) -> Plan:
    """What is asked for, else what the last session had before it; ``NothingToResumeError`` if that is done."""
    last = record.sessions[-1] if record.sessions else None
    plan = Plan(last.total_steps, last.stop_at) if last else Plan(config.total_steps, config.stop_at)
    stop_at = plan.stop_at if command.stop_at is None else command.stop_at
    total_steps = plan.total_steps if command.steps is None else command.steps
    if record.reached_goal and command.stop_at is None:
        raise NothingToResumeError(
            f"{run.path} is finished: it reached its goal at step {record.step:,}. To go on beyond it: triax resume"
            f" {run.path} --stop-at inf, or a higher return."
        )
    done = max(record.step, run.states.latest_step() or 0)
    is_done = total_steps <= done and record.state != "unfinished"
    if is_done or (command.steps is not None and total_steps < done):
        raise NothingToResumeError(
            f"{run.path} has done {done:,} of {total_steps:,} steps. To go on: triax resume {run.path} --steps N,"
            f" with N above {done}."
        )
    return Plan(total_steps, stop_at)


def _tell_of_versions(record: RunRecord) -> None:
    before, now = record.sessions[-1].versions if record.sessions else {}, installed_versions()
    changed = [f"{name} {version}, now {now.get(name)}" for name, version in before.items() if now.get(name) != version]
    if changed:
        _say(f"trained so far with {'; '.join(changed)}: numbers may differ from those of an unbroken run.")


def _say(message: str) -> None:
    print(f"triax: {message}", file=sys.stderr)
