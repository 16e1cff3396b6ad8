"""The base of wrappers around JAX environments."""

from typing import Any

from triax.core.keys import Key
from triax.env_protocol.interface import check_env


class EnvWrapper:
    """Passes everything on to ``env``: spaces, ``render``, ``dt`` and whatever else it has.

    Override ``reset`` and ``step``, and ``restart`` where ``env.restart`` matters. States are values:
    make new ones with ``replace``, and new dicts for ``info``.
    """

    def __init__(self, env: Any):
        check_env(type(self).__name__, env)
        self.env = env

    @property
    def observation_size(self) -> Any:
        """That of ``env``: the length of a flat observation, or a pytree of shapes."""
        return self.env.observation_size

    @property
    def action_size(self) -> Any:
        """That of ``env``: the length of an action, or the number of discrete ones."""
        return self.env.action_size

    def reset(self, rng: Key) -> Any:
        """The first state of an episode that ``rng`` draws."""
        return self.env.reset(rng)

    def restart(self, rng: Key) -> Any:
        """The first state of an episode that is not a training's first; here the same as ``reset``."""
        return self.reset(rng)

    def step(self, state: Any, action: Any) -> Any:
        """The state after ``action``."""
        return self.env.step(state, action)

    def __getattr__(self, name: str) -> Any:
        if name == "env" or name.startswith("__"):  # asked for by copy and pickle, before there is an env
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r})"
