"""Names for what passes between users and triax."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["Action", "Batch", "LogPropensity", "Observation", "Policy", "SpaceElement"]

Batch = Sequence
"""Anything with a leading batch axis."""
Observation = TypeVar("Observation")
"""A member of an observation space."""
Action = TypeVar("Action")
"""A member of an action space."""
LogPropensity = TypeVar("LogPropensity", bound=float)
"""The log-probability (or log-density) with which an action was taken, in nats."""
SpaceElement = int | np.ndarray | tuple | dict
"""A member of any Gymnasium space that triax supports."""
Policy = Callable[[Any, bool], Any]
"""``pi(s, return_logp) -> a`` or ``(a, logp)``."""
