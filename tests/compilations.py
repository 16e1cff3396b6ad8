"""How often XLA compiles something."""

import contextlib
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
