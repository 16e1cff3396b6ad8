"""Checks of what is passed to a buffer."""

import math
from typing import Any

import numpy as np

from triax.core.errors import OutOfRangeError


def positive_number(who: str, name: str, value: Any) -> float:
    """``value`` as a float; ``TypeError`` for no number, ``OutOfRangeError`` unless it is positive and finite."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if is_number and 0 < value < math.inf:
        return float(value)
    raise (OutOfRangeError if is_number else TypeError)(f"{who}: {name} must be a positive number; got {value!r}")
