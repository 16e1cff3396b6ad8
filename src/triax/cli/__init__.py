"""The command line: ``triax train``, ``triax evaluate``."""

from triax.cli.main import main

__all__ = ["main"]
