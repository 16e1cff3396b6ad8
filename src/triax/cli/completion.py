"""Tab completion: tyro's scripts, with what they lack.

Tyro offers what it hides, takes a line end in a description for the next option, and completes no positional path.
"""

import ast
import contextlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tyro

from triax.cli.commands import Arguments

_SPEC = "COMPLETION_SPEC = "
SHELLS, MENDED = ("bash", "zsh", "fish"), ("bash", "zsh")
_HIDDEN = "--algorithm"
"""Set by the name of the subcommand; in no help."""
_ASKS_FOR_FILES = '[[ "$completions" == "__TYRO_COMPLETE_FILES__" ]]'
_LISTS_FILES = 'COMPREPLY=($(compgen -f -- "$cur"))'
_LISTS_RUNS = """compopt -o filenames 2>/dev/null
    local IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))"""
"""Folders get a slash; ``$cur`` has the command in front."""


def complete(arguments: Sequence[str], told: dict[str, str]) -> None:
    """Print or write the script of ``--tyro-print-completion SHELL`` or ``--tyro-write-completion SHELL FILE``.

    ``told`` says what each command and algorithm is, by its name.
    """
    option, shell, *target = arguments
    printed = [option.replace("_", "-").replace("write", "print"), shell]
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        tyro.cli(Arguments, prog="triax", args=printed)
    script = mend(shown.getvalue(), told) if shell in MENDED else shown.getvalue()
    if target and target[0] != "-":
        Path(target[0]).write_text(script)
    else:
        print(script, end="")


def mend(script: str, told: dict[str, str]) -> str:
    """A script of tyro's for bash or zsh that offers what ``--help`` lists, and files where it knows nothing else."""
    lines = script.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if line.startswith(_SPEC):
            lines[i] = f"{_SPEC}{_mend_spec(ast.literal_eval(line.removeprefix(_SPEC)), told)!r}\n"
    script = "".join(lines)
    script = script.replace(_ASKS_FOR_FILES, f'[[ -z "$completions" ]] || {_ASKS_FOR_FILES}')
    return script.replace(_LISTS_FILES, _LISTS_RUNS)


def _mend_spec(spec: dict[str, Any], told: dict[str, str]) -> dict[str, Any]:
    options = [option for option in spec["options"] if option["flags"] != [_HIDDEN]]
    options = [option | {"description": _in_one_line(option["description"])} for option in options]
    commands = {
        name: _mend_spec(inner, told) | {"description": _in_one_line(told[name])}
        for name, inner in spec["subcommands"].items()
    }
    return spec | {"options": options, "subcommands": commands}


def _in_one_line(text: str) -> str:
    """As it is read: without the markup of docstrings, and with the percent signs that help doubles."""
    return re.sub(r"\s+", " ", text).replace("``", "").replace("%%", "%")
