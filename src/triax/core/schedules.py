"""Schedules: numbers that change with time."""

import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class StepwiseLinearFunction:
    """Linear between steps ``(timestep, value)``, flat before the first and after the last.

    Needs at least two steps with ascending int timesteps: ``TypeError`` and ``ValueError`` otherwise. Also an
    optax schedule: a traced timestep gives a traced value.
    """

    def __init__(self, *steps: tuple[Any, Any]):
        if len(steps) < 2 or not all(map(_is_step, steps)):
            raise TypeError(
                "StepwiseLinearFunction: expected at least two steps (int, number), "
                f"such as (0, 1.0), (100, 0.1); got {steps}"
            )
        self._timesteps = np.array([t for t, _ in steps], np.float64)
        self._values = np.array([value for _, value in steps], np.float64)
        if not np.all(np.diff(self._timesteps) > 0):
            raise ValueError(f"StepwiseLinearFunction: timesteps must ascend; got {[t for t, _ in steps]}")

    def __call__(self, timestep: Any) -> Any:
        """The value at a time: a float, or for a JAX array a JAX array."""
        if isinstance(timestep, jax.Array):
            return jnp.interp(timestep, self._timesteps, self._values)
        return float(np.interp(timestep, self._timesteps, self._values))

    def __repr__(self) -> str:
        steps = ", ".join(f"({t:g}, {v:g})" for t, v in zip(self._timesteps, self._values, strict=True))
        return f"StepwiseLinearFunction({steps})"


def _is_step(step: Any) -> bool:
    return (
        isinstance(step, tuple | list)
        and len(step) == 2
        and isinstance(step[0], numbers.Integral)
        and isinstance(step[1], numbers.Real)
    )
