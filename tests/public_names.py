"""The public names of triax with their signatures, as text: ``python tests/public_names.py`` writes it to a file."""

import enum
import inspect
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STORED = Path(__file__).parent / "public_names.txt"
sys.path.insert(0, str(ROOT / "docs" / "extensions"))

from reference import homes  # noqa: E402

import triax  # noqa: E402


def value_of(dotted: str) -> Any:
    """What a dotted name of the reference stands for."""
    found: Any = triax
    for part in dotted.split(".")[1:]:
        found = getattr(found, part)
    return found


def public_names() -> dict[str, Any]:
    """Every dotted name under which a public object is documented, and the object."""
    return {home: value_of(home) for names in homes().values() for home in names.values()}


def members(cls: type) -> dict[str, Any]:
    """Public methods and properties that triax defines, by class or inheritance."""
    own = [base for base in reversed(cls.__mro__) if base.__module__.startswith("triax.")]
    found = {name: member for base in own for name, member in vars(base).items() if is_documented(name, member)}
    return dict(sorted(found.items()))


def is_documented(name: str, member: Any) -> bool:
    """Whether a member of a class is one that users call or read: a method or a property."""
    kinds = (property, classmethod, staticmethod)
    called = inspect.isfunction(member) or isinstance(member, kinds)
    return called and (name == "__call__" or not name.startswith("_"))


def signature(value: Any) -> str:
    """Names, kinds and defaults of parameters; without annotations, which no caller depends on."""
    try:
        found = inspect.signature(value)
    except ValueError:  # of a builtin
        return "(...)"
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found.parameters.values()]
    text = str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def lines() -> list[str]:
    """One line for each name, and for each of its members; where an object has several names, under each."""
    found = []
    for title, names in homes().items():
        for name, home in names.items():
            dotted = f"{title}.{name}"
            found += [f"{dotted} = {home}"] if home != dotted else described(dotted, value_of(dotted))
    return sorted(found)


def described(dotted: str, value: Any) -> list[str]:
    """The lines of one object."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return [f"{dotted}: {', '.join(value.__members__)}"]
    if not inspect.isclass(value):
        return [f"{dotted}{signature(value)}" if inspect.isfunction(value) else dotted]
    own = members(value)
    called = [f"{dotted}.{name}{signature(getattr(value, name))}" for name in own if callable(getattr(value, name))]
    read = [f"{dotted}.{name}" for name in own if not callable(getattr(value, name))]
    return [f"{dotted}{signature(value)}", *called, *read]


if __name__ == "__main__":
    STORED.write_text("\n".join(lines()) + "\n")
