"""From what was typed to a command; what is misspelt is told with what was meant, of the command that was called."""

import contextlib
import difflib
import inspect
import io
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, get_args, get_type_hints

import tyro

from triax.cli.commands import Arguments, Command, Train
from triax.cli.completion import SHELLS, complete

WRONG_USAGE = 2
_ENOUGH, _NEAR_BEST, _MOST = 0.6, 0.1, 3
"""How similar a name must be to be meant, in [0, 1]; how far below the best one; and how many are told."""

_OPTION = r"--[a-zA-Z]|-(?!inf|nan)[a-zA-Z]"


def parse(arguments: Sequence[str]) -> Command:
    """The command; exits with 0 after help, and with 2 and what was meant for what is not understood."""
    if len(arguments) > 1 and re.fullmatch(r"--tyro[-_](print|write)[-_]completion", arguments[0]):
        if arguments[1] not in SHELLS:
            _refuse(f"triax {arguments[0]}: expected one of {', '.join(SHELLS)}; got {arguments[1]!r}.")
        complete(arguments, _told())
        sys.exit(0)
    command = _choose("triax", "command", arguments, _choices(Arguments, "triax"))
    if command is None:
        return tyro.cli(Arguments, prog="triax", args=arguments).triax
    name, rest = arguments[0], arguments[1:]
    if command is not Train:
        return _parse_options(command, f"triax {name}", rest)
    algorithm = _choose("triax train", "algorithm", rest, _choices(Train, "algorithm"))
    if algorithm is None:
        return tyro.cli(Train, prog="triax train", args=rest)
    return Train(_parse_options(algorithm, f"triax train {rest[0]}", rest[1:]))


def _told() -> dict[str, str]:
    """What each command and algorithm is: the first paragraph of its class's docstring."""
    named = _choices(Arguments, "triax") | _choices(Train, "algorithm")
    return {name: inspect.cleandoc(command.__doc__ or "").partition("\n\n")[0] for name, command in named.items()}


def _choices(of: type, field: str) -> dict[str, type]:
    """Names and classes of the subcommands in the annotation of a field."""
    union = get_args(get_type_hints(of, include_extras=True)[field])[0]  # without what is said of it
    members = [get_args(member) for member in get_args(union)]
    return {mark.name: cls for cls, *marks in members for mark in marks if hasattr(mark, "name")}


def _choose(program: str, what: str, words: Sequence[str], choices: dict[str, type]) -> type | None:
    """The class of the first word; ``None`` where there is none, or help is asked for."""
    if not words or words[0] in ("-h", "--help"):
        return None
    found = choices.get(words[0])
    if found is None:
        listed = f"{what.capitalize()}s are {', '.join(choices)}."
        if words[0].startswith("-"):
            _refuse(f"{program}: expected {_with_article(what)} before {words[0]}. {listed}")
        _refuse(f"{program}: unknown {what} {words[0]!r}{_meant(words[0], choices)} {listed}")
    return found


def _parse_options(command: type, program: str, words: Sequence[str]) -> Any:
    """What is misspelt is told before all else: tyro may have taken what follows for its values."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # tyro says what a class refuses even without console_outputs
            return tyro.cli(command, prog=program, args=words, console_outputs=False)
    except SystemExit as end:
        if end.code:
            _refuse_misspelt(command, program, words)
    return tyro.cli(command, prog=program, args=words)  # helps, or says what is wrong


def _refuse_misspelt(command: type, program: str, words: Sequence[str]) -> None:
    options = _options_of(command)
    typed = [word.partition("=")[0] for word in words if re.match(_OPTION, word)]
    unknown = [word for word in typed if word.replace("_", "-") not in options]
    if unknown:
        told = " ".join(f"unknown option {word}{_meant(word, options)}" for word in unknown)
        _refuse(f"{program}: {told} All options: {program} --help")


def _options_of(command: type) -> list[str]:
    """Those that its help lists, in one column or several, with borders or without."""
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        tyro.cli(command, args=["--help"])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())
    entries = re.findall(r"(?:^|│|  ) *(--?[a-zA-Z][\w-]*(?:, --[\w-]+)*)", plain, flags=re.MULTILINE)
    return list(dict.fromkeys(option for entry in entries for option in entry.split(", ")))


def _meant(typed: str, names: Iterable[str]) -> str:
    """The end of a sentence: which of the names are similar, if any."""
    scores = {name: _similarity(typed.lstrip("-").lower().replace("_", "-"), name.lstrip("-")) for name in names}
    enough = max(_ENOUGH, max(scores.values()) - _NEAR_BEST)
    similar = sorted((name for name in scores if scores[name] >= enough), key=lambda name: -scores[name])[:_MOST]
    return f": did you mean {' or '.join(similar)}?" if similar else "."


def _similarity(typed: str, name: str) -> float:
    """In [0, 1]: of the whole name, of words of it that stand together, or of its initials."""
    words = name.split("-")
    ends = [(i, j) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]
    forms = {"-".join(words[i:j]) for i, j in ends} | {"".join(word[:1] for word in words)}
    best = max(difflib.SequenceMatcher(a=typed, b=form).ratio() for form in forms)
    return 1.0 if name.startswith(typed) else best


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(WRONG_USAGE)
