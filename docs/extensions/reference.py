"""A page of the reference for each public package, with what its ``__all__`` has."""

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import triax

PAGE = """\
# {title}

```{{eval-rst}}
.. currentmodule:: {title}

{about}

{table}

{members}
```
"""
TABLE = ".. autosummary::\n   :nosignatures:\n\n"
# What is public in several modules is documented where users write it, and these only say where.
LAST = ("triax.algorithms", "triax.utils", "triax.value_losses", "triax.value_transforms")


def packages() -> dict[str, ModuleType]:
    """The public modules by their import paths; first ``triax`` itself."""
    found = {f"triax.{name}": getattr(triax, name) for name in triax.__all__}
    return {"triax": triax, **{name: module for name, module in found.items() if isinstance(module, ModuleType)}}


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module that are no modules and no dunders."""
    values = {name: getattr(module, name) for name in module.__all__ if not name.startswith("_")}
    return [name for name, value in values.items() if not isinstance(value, ModuleType)]


def homes() -> dict[str, dict[str, str]]:
    """For each module its public names, each with the dotted name under which it is documented."""
    order = sorted(packages(), key=lambda title: (title in LAST, title))
    found: dict[int, str] = {}
    return {
        title: {name: found.setdefault(id(getattr(packages()[title], name)), f"{title}.{name}") for name in names}
        for title in order
        for names in [names_of(packages()[title])]
    }


def directive(dotted: str) -> str:
    """How autodoc is asked for a name."""
    module, _, name = dotted.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    kind = "autoclass" if inspect.isclass(value) else "autofunction" if inspect.isfunction(value) else "autodata"
    return f".. {kind}:: {dotted}"


def page(title: str, names: dict[str, str]) -> str:
    """The Markdown of a module's page."""
    own = [name for name, home in names.items() if home == f"{title}.{name}"]
    others = [f"* ``{name}`` is :obj:`{home}`" for name, home in names.items() if name not in own]
    table = TABLE + "\n".join(f"   {name}" for name in own) if own else ""
    members = "\n\n".join(directive(f"{title}.{name}") for name in own)
    about = inspect.getdoc(importlib.import_module(title)) or ""
    return PAGE.format(title=title, about=about, table="\n\n".join([table, "\n".join(others)]), members=members)


def write_pages(app: Any) -> None:
    """Write ``api/generated/*.md``; files that are as they should be are left, so that a build can skip them."""
    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{title}.md": page(title, names) for title, names in homes().items()}
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


class AttributeDocs:
    """Keeps napoleon from taking what is before a colon in an attribute's docstring for its type."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def keep(self, app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
        """Runs before napoleon."""
        self._lines = list(lines)

    def restore(self, app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
        """Runs after napoleon."""
        if what in ("attribute", "data", "property"):
            lines[:] = self._lines


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    attributes = AttributeDocs()
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", attributes.keep, priority=400)
    app.connect("autodoc-process-docstring", attributes.restore, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
