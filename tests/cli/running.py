"""Commands run in this process, and a training that takes a second."""

import pytest

from triax.cli import main

QUICK = ["--total-steps", "600", "--eval-every", "300", "--eval-episodes", "2", "--hidden", "8"]
QUICK += ["--learning-starts", "100", "--batch-size", "16"]


def run(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as exit_info:
        main([str(argument) for argument in arguments])
    return exit_info.value.code
