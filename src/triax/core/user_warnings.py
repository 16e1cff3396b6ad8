"""Warnings that point at the line of the user, however many calls of triax lie in between."""

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.partition(".")[0]


def warn_user(message: str) -> None:
    """A ``UserWarning`` at the innermost line outside triax."""
    level, frame = 1, sys._getframe()
    while frame is not None and _is_own(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def _is_own(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE
