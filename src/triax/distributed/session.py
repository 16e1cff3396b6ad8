"""A connection to Ray that is opened as a whole, and closed again."""

import logging
import os
import threading
import warnings
from typing import Any

import ray


class Session:
    """A cluster by its address, the one that this process is connected to, or a new one on this machine.

    What was opened here is closed again; a new cluster ends with it, its processes too.

    Ray is started in a thread of its own. There it leaves the signals of this program alone: an interrupt while its
    processes start would leave some behind, so it waits until they have. The thread stays until the end, since the
    processes end with the thread that started them.
    """

    def __init__(self, address: str | None, num_cpus: int) -> None:
        self._is_own = not ray.is_initialized()
        self._opened, self._closed = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        if not self._is_own:
            return
        threading.Thread(target=self._open, args=(address, num_cpus), daemon=True, name="ray").start()
        try:
            self._opened.wait()
        except BaseException:
            self._opened.wait()
            self.close()
            raise
        if self._error is not None:
            self.close()
            raise self._error

    def close(self) -> None:
        """Disconnect."""
        if self._is_own:
            ray.shutdown()
            self._closed.set()

    def _open(self, address: str | None, num_cpus: int) -> None:
        try:
            _initialize(address, num_cpus)
        except BaseException as error:
            self._error = error
        self._opened.set()
        self._closed.wait()


def _initialize(address: str | None, num_cpus: int) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None:
        options["address"] = address
    else:  # processes share cores where there are fewer: they wait for each other most of the time
        options |= {"num_cpus": max(num_cpus, os.cpu_count() or 1), "include_dashboard": False}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with warnings.catch_warnings():
        # JAX warns of forks; what Ray forks becomes another program at once.
        warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
        ray.init(**options)
