"""Public names in the code font of a page become links into the reference; pages need no markup for it."""

import re
from collections import Counter
from typing import Any

from docutils import nodes
from reference import homes
from sphinx.addnodes import pending_xref


def targets() -> dict[str, str]:
    """What may be written for each documented name: ``triax.losses.gae``, and ``gae`` where that is unique."""
    found = {f"{title}.{name}": home for title, names in homes().items() for name, home in names.items()}
    short = Counter(home.rpartition(".")[2] for home in set(found.values()))
    for home in set(found.values()):
        name = home.rpartition(".")[2]
        if short[name] == 1 and len(name) > 1:
            found[name] = home
    return found


class Links:
    """Turns literals of pages into references."""

    def __init__(self) -> None:
        self._targets = targets()

    def __call__(self, app: Any, doctree: nodes.document) -> None:
        """Called for each page that was read."""
        if app.env.docname.startswith("api/generated/"):
            return
        for literal in list(doctree.findall(nodes.literal)):
            target = self._targets.get(re.sub(r"\(.*\)$", "", literal.astext()))
            if target is None or isinstance(literal.parent, nodes.reference | pending_xref):
                continue
            link = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refwarn=False)
            link["refdoc"] = app.env.docname
            literal.replace_self(link)
            link += literal


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", Links())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
