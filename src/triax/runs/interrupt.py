"""Stopping cleanly: the first signal asks the loop to finish, the second one interrupts it."""

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class CleanInterrupt:
    """Context in which the first Ctrl-C (SIGINT) or SIGTERM only sets ``requested``, for the loop to poll.

    So nothing is left half-done::

        with CleanInterrupt() as interrupt:
            while step < total_steps and not interrupt.requested:
                ...

    A second signal raises ``KeyboardInterrupt``, wherever the program is. The handlers from before are put
    back at the end. Python lets only the main thread handle signals: elsewhere this context does nothing,
    and ``requested`` stays ``False``.
    """

    def __init__(self):
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "CleanInterrupt":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            # None stands for a handler that was not set from Python, which Python cannot put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        name = signal.Signals(number).name
        # Not print: the signal may come while the program is inside one. Nor may a closed stderr end a run.
        with contextlib.suppress(OSError):
            os.write(2, f"\n{name}: finishing this step; once more to stop at once\n".encode())
