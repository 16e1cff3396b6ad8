"""Checks of what is passed to a buffer."""

import math
from typing import Any

import numpy as np


def positive_number(who: str, name: str, value: Any) -> float:
    """``value`` as a float; ``TypeError`` unless it is a finite number above zero."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise TypeError(f"{who}: {name} must be a positive number; got {value!r}")
    return float(value)
