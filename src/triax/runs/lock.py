"""One process trains a run at a time: a lock on its folder, which ends with the process however that ends."""

import contextlib
import errno
import os
import time
from pathlib import Path

from triax.core.errors import TriaxError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None

_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


class RunInUseError(TriaxError, RuntimeError):
    """Another process, or another part of this one, is writing to a run."""


class FolderLock:
    """Holds a folder until ``release``, or until the process ends; ``RunInUseError`` when somebody else does.

    Advisory. On file systems that know no locks, and on Windows, nobody is kept out. ``patience`` is for how many
    seconds it tries: :func:`is_in_use` holds a folder for a moment.
    """

    def __init__(self, folder: Path, patience: float = 0.2) -> None:
        self._descriptor: int | None = None
        if fcntl is None:
            return
        descriptor, deadline = os.open(folder, os.O_RDONLY), time.monotonic() + patience
        while self._descriptor is None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._descriptor = descriptor
            except OSError as error:
                if error.errno in _TAKEN and time.monotonic() < deadline:
                    time.sleep(patience / 10)
                    continue
                os.close(descriptor)
                if error.errno not in _TAKEN:
                    return
                raise RunInUseError(f"{folder}: another process is training this run. Stop that first.") from None

    def release(self) -> None:
        """Lets others have the folder; a second call does nothing."""
        if self._descriptor is not None and fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for processes that were forked meanwhile
            os.close(self._descriptor)
            self._descriptor = None


def require_unused(folder: Path) -> None:
    """``RunInUseError`` when somebody holds the folder at this moment."""
    FolderLock(folder, patience=0.0).release()


def is_in_use(folder: Path) -> bool:
    """Whether somebody holds the folder at this moment."""
    try:
        require_unused(folder)
    except RunInUseError:
        return True
    return False
