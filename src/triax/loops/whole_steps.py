"""Ctrl-C between steps, not within: what a step replaces is then whole."""

import signal
import threading
from types import FrameType


class WholeSteps:
    """Context for a loop: within ``begin`` and ``end`` a Ctrl-C waits, and ``end`` raises ``KeyboardInterrupt``.

    A second Ctrl-C does not wait. Where the program handles the signal in its own way, or in another thread than the
    main one, which gets none, this does nothing.
    """

    def __init__(self) -> None:
        self._within = self._requested = self._handles = False

    def __enter__(self) -> "WholeSteps":
        in_main_thread = threading.current_thread() is threading.main_thread()
        self._handles = in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._handles:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def begin(self) -> None:
        """A step begins."""
        self._within = True

    def end(self) -> None:
        """It is done."""
        self._within = False
        if self._requested:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._requested or not self._within:
            raise KeyboardInterrupt
        self._requested = True
