"""The directive ``differences``: what ``migrating/differences.toml`` tells of one library, as a list."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

FILE = Path(__file__).parent.parent / "migrating" / "differences.toml"
OF_NNX_PPO = ("triax.networks.", "triax.algorithms.", "triax.wrappers.EpisodeWrapper")
LIBRARIES = ("coax", "nnx-ppo")


def library_of(name: str) -> str:
    """The library that the name of a difference comes from, as the head of the file says."""
    return "nnx-ppo" if name.startswith(OF_NNX_PPO) else "coax"


def differences(library: str, entries: dict[str, dict[str, str]]) -> list[str]:
    """A definition list in Markdown, one entry for each difference from the library."""
    chosen = {name: entry["reason"] for name, entry in entries.items() if library_of(name) == library}
    return [line for name, reason in sorted(chosen.items()) for line in (f"`{name}`", f": {as_markdown(reason)}", "")]


def as_markdown(text: str) -> str:
    """Names of triax as code, and nothing else as markup."""
    text = re.sub(r"([*_<\[\]])", r"\\\1", text)
    return re.sub(r"\btriax(?:\.(?:\w|\\_)+)+", lambda name: f"`{name.group().replace(chr(92), '')}`", text)


class Differences(Directive):
    """``{differences} coax`` or ``{differences} nnx-ppo``."""

    required_arguments = 1

    def run(self) -> Sequence[nodes.Node]:
        """The parsed list; an error for a library that nobody compares with."""
        (library,) = self.arguments
        if library not in LIBRARIES:
            raise self.error(f"differences: expected one of {LIBRARIES}; got {library!r}.")
        lines = differences(library, tomllib.loads(FILE.read_text()))
        container = nodes.container()
        self.state.nested_parse(StringList(lines, str(FILE)), self.content_offset, container)
        self.state.document.settings.record_dependencies.add(str(FILE))
        return container.children


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("differences", Differences)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
