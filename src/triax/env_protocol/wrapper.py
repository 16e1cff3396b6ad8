"""The base of wrappers around JAX environments."""

from collections.abc import Hashable
from functools import cached_property
from typing import Any

from triax.core.freezing import frozen
from triax.core.keys import Key
from triax.env_protocol.interface import check_env


class EnvWrapper:
    """Passes everything on to ``env``: spaces, ``render``, ``dt`` and whatever else it has.

    Override ``reset`` and ``step``, and ``restart`` where ``env.restart`` matters. States are values:
    make new ones with ``replace``, and new dicts for ``info``.

    Wrappers of one class with equal attributes are equal, so that what is compiled for one serves the other.
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EnvWrapper):
            return NotImplemented
        return self is other or self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash(self._contents())

    def _contents(self) -> Hashable:
        """What it is made of, without what was computed from that."""
        cls = type(self)
        kept = {n: v for n, v in vars(self).items() if not isinstance(getattr(cls, n, None), cached_property)}
        return cls, frozen(kept)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r})"
