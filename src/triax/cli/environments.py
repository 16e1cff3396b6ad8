"""Environments by the names that users type."""

import importlib
from typing import Any

import gymnasium

from triax import envs
from triax.core.errors import TriaxError

_ON_DEVICE = ("gymnax", "brax", "playground")


class EnvironmentNameError(TriaxError, ValueError):
    """No environment of this name can be made, or none of the kind that is needed."""


def make_env(name: str, **options: Any) -> gymnasium.Env:
    """The Gymnasium environment ``Name-v0``, or ``module:Name-v0``, whose module is imported first.

    Raises ``EnvironmentNameError`` when there is none.
    """
    _check_form(name)
    if name.startswith(tuple(f"{package}:" for package in _ON_DEVICE)):
        raise EnvironmentNameError(
            f"{name} is a JAX environment, and a Gymnasium one is needed. Try another algorithm: q-learning is DQN for"
            " both."
        )
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        raise EnvironmentNameError(f"the environment {name!r} cannot be made: {error}") from error


def make_any_env(name: str) -> Any:
    """A JAX environment, ``gymnax:NAME``, ``brax:NAME``, ``playground:NAME`` or ``module:Class``; else as ``make_env``.

    Raises ``EnvironmentNameError`` when there is none.
    """
    _check_form(name)
    module, colon, rest = name.partition(":")
    try:
        if module in _ON_DEVICE and colon:
            return envs.make(name)
        made = _of_class(module, rest) if colon and rest.isidentifier() else None
    except (ImportError, ValueError) as error:
        raise EnvironmentNameError(f"the environment {name!r} cannot be made: {error}") from error
    return make_env(name) if made is None else made


def is_on_device(env: Any) -> bool:
    """Whether it is a JAX environment."""
    return not isinstance(env, gymnasium.Env)


def _of_class(module: str, name: str) -> Any:
    """What a class of that module makes; ``None`` without one, or where Gymnasium knows the name."""
    found = getattr(importlib.import_module(module), name, None)
    if name in gymnasium.registry or not isinstance(found, type):
        return None
    env = found()
    lacking = [part for part in ("reset", "step", "observation_space", "action_space") if not hasattr(env, part)]
    if lacking:
        raise ValueError(f"an environment has reset, step, observation_space, action_space; {', '.join(lacking)} lack")
    return env


def _check_form(name: str) -> None:
    if name.count(":") > 1:
        raise EnvironmentNameError(f"{name!r} is no name of an environment: expected Name-v0 or module:Name-v0.")
