"""Environments by the names that users type."""

from typing import Any

import gymnasium

from triax.core.errors import TriaxError


class EnvironmentNameError(TriaxError, ValueError):
    """No environment of this name can be made."""


def make_env(name: str, **options: Any) -> gymnasium.Env:
    """The Gymnasium environment ``Name-v0``, or ``module:Name-v0``, whose module is imported first.

    Raises ``EnvironmentNameError`` when there is none.
    """
    if name.count(":") > 1:
        raise EnvironmentNameError(f"{name!r} is no name of an environment: expected Name-v0 or module:Name-v0.")
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        raise EnvironmentNameError(f"the environment {name!r} cannot be made: {error}") from error
