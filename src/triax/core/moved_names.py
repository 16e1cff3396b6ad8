"""Names that users know from elsewhere, and what to use here."""

from collections.abc import Callable, Mapping
from typing import NoReturn


def refuse_moved(module: str, moved: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """A module's ``__getattr__``: an ``AttributeError`` that says what to use instead, for the names in ``moved``."""

    def missing(name: str) -> NoReturn:
        hint = f" Use {moved[name]}." if name in moved else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}.{hint}", name=name)

    return missing
