"""Entry point of the command ``triax``."""

import sys
from collections.abc import Sequence

import gymnasium
import tyro

from triax._version import __version__
from triax.cli.commands import Arguments, Evaluate, Train
from triax.core.errors import TriaxError

FAILED, INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; exits with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments[:1]) == ["--version"]:  # a command is due otherwise
        print(f"triax {__version__}")
        sys.exit(0)
    command = tyro.cli(Arguments, prog="triax", args=arguments).triax
    try:
        sys.exit(_run(command))
    except KeyboardInterrupt:
        print("triax: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
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
