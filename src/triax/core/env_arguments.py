"""What is passed where an environment is due, and is none: its name, or its class."""

from typing import Any

import gymnasium


def is_like_env(thing: Any) -> bool:
    """Whether it can be reset and stepped: an environment of any kind, or the class of one."""
    return all(callable(getattr(thing, name, None)) for name in ("reset", "step"))


def refuse_unmade_env(who: str, env: Any) -> None:
    """``TypeError`` for the name or the class of an environment, which says how to make one."""
    if isinstance(env, str):
        raise TypeError(f"{who}: env must be an environment; got its name. Try gymnasium.make({env!r}).")
    if isinstance(env, type) and is_like_env(env):
        raise TypeError(f"{who}: env must be an environment; env is a class. Try {env.__name__}().")


def check_gymnasium_env(who: str, env: Any) -> None:
    """``TypeError`` unless ``env`` is a ``gymnasium.Env``, not its name and not its class."""
    refuse_unmade_env(who, env)
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"{who}: env must be a gymnasium.Env; got {type(env).__name__}. Try gymnasium.make(...).")
