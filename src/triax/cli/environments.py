"""Environments by the names that users type."""

import importlib
from typing import Any

import gymnasium

from triax import envs
from triax.core.errors import MissingExtraError, TriaxError

_ON_DEVICE = ("gymnax", "brax", "playground")
_GYMNAX, _MUJOCO = "pip install 'triax[gymnax]'", "pip install 'triax[mujoco]'"
JAX_EXAMPLES = f"gymnax:CartPole-v1 ({_GYMNAX}) or a class of your own, module:Class"
"""What to try where one is needed."""
KINDS = {
    "Name-v0": ("of Gymnasium: CartPole-v1, Pendulum-v1, ...", "-"),
    "module:Name-v0": ("of Gymnasium, registered when the module is imported", "-"),
    "gymnax:NAME": ("JAX: CartPole-v1, Pendulum-v1, Breakout-MinAtar, ...", _GYMNAX),
    "brax:NAME": ("JAX: ant, halfcheetah, humanoid, ...", _MUJOCO),
    "playground:NAME": ("JAX: CartpoleBalance, CheetahRun, ...", _MUJOCO),
    "module:Class": (
        "JAX: a class of yours, since none is built in; of the examples, ppo:CartPole with PYTHONPATH=examples/device",
        "-",
    ),
}
"""What it is, and what must be installed, by the form of the name."""


class EnvironmentNameError(TriaxError, ValueError):
    """No environment of this name can be made, or none of the kind that is needed."""


def make_env(name: str, **options: Any) -> gymnasium.Env:
    """The Gymnasium environment ``Name-v0``, or ``module:Name-v0``, whose module is imported first.

    Raises ``EnvironmentNameError`` when there is none, or it is a JAX environment.
    """
    _check_form(name)
    if name.partition(":")[0] in _ON_DEVICE or _class_of(name) is not None:
        raise EnvironmentNameError(
            f"{name} is a JAX environment, and a Gymnasium one is needed. Try another algorithm: q-learning is DQN for"
            " both."
        )
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        raise _error_of(name, error) from error


def make_any_env(name: str) -> Any:
    """A JAX environment, ``gymnax:NAME``, ``brax:NAME``, ``playground:NAME`` or ``module:Class``; else as ``make_env``.

    Raises ``EnvironmentNameError`` when there is none.
    """
    _check_form(name)
    try:
        if name.partition(":")[0] in _ON_DEVICE:
            return envs.make(name)
        made = _make_of_class(name)
    except EnvironmentNameError:
        raise
    except (ImportError, ValueError) as error:
        raise _error_of(name, error) from error
    return make_env(name) if made is None else made


def is_on_device(env: Any) -> bool:
    """Whether it is a JAX environment."""
    return not isinstance(env, gymnasium.Env)


def _make_of_class(name: str) -> Any:
    """What a class of JAX environments makes; ``None`` if ``name`` is none."""
    found = _class_of(name)
    if found is None:
        return None
    env = found()
    lacking = [part for part in ("reset", "step", "observation_space", "action_space") if not hasattr(env, part)]
    if lacking:
        raise ValueError(f"an environment has reset, step, observation_space and action_space; it lacks {lacking}.")
    return env


def _class_of(name: str) -> type | None:
    """The class ``module:Class``; ``None`` without one, where Gymnasium knows the name, or for one of Gymnasium's."""
    module, _, rest = name.partition(":")
    if not rest.isidentifier() or rest in gymnasium.registry:
        return None
    try:
        found = getattr(importlib.import_module(module), rest, None)
    except ImportError as error:
        raise _error_of(name, error) from error
    return found if isinstance(found, type) and not issubclass(found, gymnasium.Env) else None


def _check_form(name: str) -> None:
    if name.count(":") > 1:
        raise EnvironmentNameError(f"{name!r} is no name of an environment: expected Name-v0 or module:Name-v0.")


def _error_of(name: str, error: Exception) -> EnvironmentNameError:
    module = name.partition(":")[0]
    lacks_extra = isinstance(error, MissingExtraError)  # then pip helps, and no folder
    lacking = [] if lacks_extra else [getattr(one, "name", None) for one in (error, error.__cause__)]
    tries = f" Try PYTHONPATH=FOLDER, where FOLDER holds {module}.py." if module in lacking else ""
    return EnvironmentNameError(f"the environment {name!r} cannot be made: {str(error).rstrip('.')}.{tries}")
