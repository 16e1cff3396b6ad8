"""``triax train``: a new run."""

import sys
from pathlib import Path

from triax.cli.algorithms import ALGORITHMS
from triax.cli.sessions import complete
from triax.cli.train_commands import TrainCommand
from triax.cli.training import Plan
from triax.runs import CleanInterrupt, Run


def train(command: TrainCommand) -> int:
    """Train, leave a run directory, and print where; the exit code."""
    with CleanInterrupt() as interrupt:  # from the start: an early Ctrl-C also leaves a whole run
        _warn_if_nothing_is_learned(command)
        training = ALGORITHMS[command.algorithm].make_training(command)
        with _create_run(command) as run:
            plan = Plan(command.total_steps, command.stop_at)
            return complete(training, run, plan, interrupt, command)


def _warn_if_nothing_is_learned(command: TrainCommand) -> None:
    first = command.first_update
    if command.total_steps <= first:
        print(
            f"triax: nothing can be learned in {command.total_steps:,} steps: the first update comes after {first:,}.",
            file=sys.stderr,
        )


def _create_run(command: TrainCommand) -> Run:
    path = command.run_dir or Path("runs") / f"{command.algorithm}-{_as_file_name(command.env)}-{command.seed}"
    try:
        return Run.create(path, command, overwrite=command.overwrite, wandb=command.wandb)
    except FileExistsError as error:
        if not path.is_dir():
            raise
        hint = f"Try another --run-dir, triax resume {path}, or --overwrite to replace an earlier run there."
        raise FileExistsError(f"{path} is not empty. {hint}") from error


def _as_file_name(env: str) -> str:
    return env.replace("/", "_").replace(":", "_")
