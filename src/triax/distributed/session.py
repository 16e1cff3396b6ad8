"""A connection to Ray that is opened as a whole, and closed again."""

import logging
import os
import socket
import threading
import warnings
from typing import Any

import ray
from ray._private import worker

from triax.distributed.config import DistributedError

logger = logging.getLogger("triax.distributed")

LOCAL = "local"
"""The address of a new cluster on this machine."""
_LOOK_EVERY = 0.02
"""Seconds between looks at whether Ray's own processes live."""
_ANSWERS_WITHIN = 10.0
"""Seconds that a cluster has to answer."""


class Session:
    """A cluster by its address, the one that this process is connected to, or a new one on this machine.

    What was opened here is closed again; a new cluster ends with it, its processes too.

    Ray is started in a thread of its own. There it leaves the signals of this program alone: an interrupt while its
    processes start would leave some behind, so it waits until they have. The thread stays until the end, since the
    processes end with the thread that started them. Meanwhile it looks after those of Ray itself: should one die, Ray
    ends this program, at once or later, and says nothing of the run; here it is said, if there is time to.
    """

    def __init__(self, address: str | None, num_cpus: int) -> None:
        self._is_own = not ray.is_initialized()
        self._opened, self._closing, self._closed = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._lost = ""
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

    def check(self) -> None:
        """``DistributedError`` if processes of Ray itself died."""
        if self._lost:
            raise DistributedError(self._lost)

    def close(self) -> None:
        """Disconnect."""
        if self._is_own:
            self._closing.set()
            ray.shutdown()
            self._closed.set()

    def _open(self, address: str | None, num_cpus: int) -> None:
        try:
            _initialize(address, num_cpus)
        except BaseException as error:
            self._error = error
        self._opened.set()
        self._look_after_ray()
        self._closed.wait()

    def _look_after_ray(self) -> None:
        while not (self._lost or self._closing.wait(_LOOK_EVERY)):
            dead = _dead_processes()
            if dead and not self._closing.is_set():
                self._lost = f"Ray's own process {dead[0]} died, and all others of the run with it."
                logger.critical("%s What was saved last is kept: go on from there (triax resume RUN).", self._lost)


def _initialize(address: str | None, num_cpus: int) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None and address != LOCAL:
        _check_that_it_answers(address)
        options["address"] = address
    else:  # in words: without, Ray takes RAY_ADDRESS, or a cluster that runs here
        # Processes share cores where there are fewer: they wait for each other most of the time.
        options |= {"address": LOCAL, "num_cpus": max(num_cpus, os.cpu_count() or 1), "include_dashboard": False}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with warnings.catch_warnings():
        # JAX warns of forks; what Ray forks becomes another program at once.
        warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
        ray.init(**options)


def _check_that_it_answers(address: str) -> None:
    """``DistributedError`` where nobody listens at ``host:port``: Ray would try for minutes, and hear no interrupt."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or "/" in host:  # auto, ray://...
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_WITHIN).close()
    except OSError as error:
        raise DistributedError(
            f"no Ray cluster answers at {address}: {error}. Try ray start --head --port={port} there, or local for this"
            " machine."
        ) from error


def _dead_processes() -> list[str]:
    """Names of those that Ray started for itself on this machine and did not end; of a cluster by address, none."""
    node: Any = worker._global_node  # there is no public way to ask
    return [name for name, _ in node.dead_processes()] if node is not None else []
