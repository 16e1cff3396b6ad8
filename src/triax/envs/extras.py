"""Optional packages, imported where an environment of theirs is made."""

import importlib
from types import ModuleType

from triax.core.errors import MissingExtraError


def import_extra(module: str, who: str, extra: str) -> ModuleType:
    """The module; ``MissingExtraError`` when it, or something that it needs, is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(who, error.name or module, extra) from error
