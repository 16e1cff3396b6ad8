"""Entry point of the command ``triax``."""

import importlib
import os
import sys
from collections.abc import Sequence

import gymnasium

from triax._version import __version__
from triax.cli.commands import Command, Evaluate, ListRuns, MakeReport, MakeVideo, PlotRuns, ResumeRun, Train
from triax.cli.parsing import parse
from triax.core.errors import TriaxError

FAILED, INTERRUPTED = 1, 130
_FUNCTIONS = {
    Train: ("train", "train"),
    ResumeRun: ("resume", "resume"),
    Evaluate: ("evaluate", "evaluate_run"),
    MakeVideo: ("video", "film_run"),
    PlotRuns: ("plot", "plot_runs"),
    MakeReport: ("report", "report_run"),
    ListRuns: ("listing", "list_runs"),
}
"""Module and function of each command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; exits with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments[:1]) == ["--version"]:  # a command is due otherwise
        print(f"triax {__version__}")
        sys.exit(0)
    try:
        command = parse(arguments)
    except BrokenPipeError:  # who read the help has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes at its end
        sys.exit(FAILED)
    try:
        sys.exit(_run(command))
    except KeyboardInterrupt:
        print("triax: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except (TriaxError, gymnasium.error.Error, OSError, TypeError, ValueError) as error:
        print(f"triax: {' '.join(str(error).split())}", file=sys.stderr)  # in one line
        sys.exit(FAILED)


def _run(command: Command) -> int:
    """Commands import what they need only when they run: ``--help`` stays quick."""
    module, function = _FUNCTIONS[type(command)]
    asked = getattr(command, "algorithm", command)  # of ``train``: what it trains
    return getattr(importlib.import_module(f"triax.cli.{module}"), function)(asked)
