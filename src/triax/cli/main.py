"""Entry point of the command ``triax``."""

import sys
from collections.abc import Sequence

import gymnasium
import tyro

from triax.cli.commands import Command, Evaluate, Train
from triax.core.errors import TriaxError

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; exits with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    command = tyro.cli(Command, prog="triax", args=arguments, description=__doc__)
    try:
        sys.exit(_run(command))
    except (TriaxError, gymnasium.error.Error, OSError, TypeError, ValueError) as error:
        print(f"triax: {error}", file=sys.stderr)
        sys.exit(FAILED)


def _run(command: Train | Evaluate) -> int:
    """Commands import what they need only when they run: ``--help`` stays quick."""
    if isinstance(command, Train) and command.algorithm is not None:
        from triax.cli.train import train

        return train(command.algorithm)
    from triax.cli.evaluate import evaluate_run

    assert isinstance(command, Evaluate)
    return evaluate_run(command)
