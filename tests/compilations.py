"""How often XLA compiles something, and what of JAX runs in Python."""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import jax


@dataclass
class Count:
    compilations: int = 0


@contextlib.contextmanager
def counted_compilations():
    """``with counted_compilations() as count: ...``; then ``count.compilations``."""
    count = Count()

    def listen(event, duration, **others):
        count.compilations += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield count
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def python_files_of_jax_run_by(call: Callable[[], object]) -> set[str]:
    """Names of the files of jax, optax and flax of which ``call`` runs Python code, the second time.

    A jitted call that hits its cache runs none but to flatten trees; eager operations and key splits do. Attributes of
    arrays do not count.
    """
    files: set[str] = set()

    def listen(frame, event, argument):
        name = frame.f_code.co_filename
        if event == "call" and any(f"/{package}/" in name for package in ("jax", "optax", "flax")):
            files.add(name.rsplit("/", 1)[-1])

    with jax.debug_key_reuse(False):  # which runs every call in Python
        call()
        sys.setprofile(listen)
        try:
            call()
        finally:
            sys.setprofile(None)
    return files - {"array.py"}
