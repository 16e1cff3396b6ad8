"""``TRIAX_DEBUG_NANS=1``: the first NaN raises ``FloatingPointError``, with the line that made it in the traceback."""

import math
import os

import jax

VARIABLE = "TRIAX_DEBUG_NANS"


def debug_nans_if_asked() -> None:
    """Sets JAX's ``jax_debug_nans`` where the variable is set to anything but ``0``; else changes nothing.

    JAX then looks at what each compiled call returns, and where there is a NaN runs the call once more, operation by
    operation. It is slower, and reads every result from the device.
    """
    if os.environ.get(VARIABLE, "0") not in ("", "0"):
        jax.config.update("jax_debug_nans", True)


def no_number() -> float:
    """What stands in a compiled call for a number that there is not: NaN, or -inf while every NaN is an error."""
    return -math.inf if jax.config.jax_debug_nans else math.nan  # pyright: ignore[reportAttributeAccessIssue]
