"""How an episode ended: terminated by the environment or truncated by a time limit, never both."""

import functools
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool

from triax.env_protocol.state import State

Flag = Bool[Array, "*batch"]

_TRUNCATION_KEYS = ("truncated", "truncation")
"""How states tell a time limit in ``info``: as nnx-ppo does, and as Brax does."""


@functools.singledispatch
def episode_flags(state: Any) -> tuple[Flag, Flag]:
    """``terminated, truncated`` as bools, for any state that is an :class:`EnvState`; traceable.

    ``done`` with a true ``info["truncated"]`` or ``info["truncation"]`` is truncated, and ``done`` without
    is terminated. Brax's ``info["time_out"]`` is not asked: its pendulum sets it when the pole has fallen.
    """
    done = _flag(state.done)
    told = [_flag(state.info[key]) for key in _TRUNCATION_KEYS if key in state.info]
    truncated = done & functools.reduce(jnp.logical_or, told, jnp.zeros((), jnp.bool_))
    return done & ~truncated, truncated


@episode_flags.register
def _(state: State) -> tuple[Flag, Flag]:
    return state.terminated, state.truncated


@functools.singledispatch
def cut_episode(state: Any, at_limit: Flag, *, like: Any) -> Any:
    """The state, truncated where ``at_limit`` unless it ended by itself; ``info["truncated"]`` says so too.

    ``done`` gets the dtype that it has in ``like``, the state before. Traceable.
    """
    terminated, truncated = episode_flags(state)
    truncated = truncated | (at_limit & ~terminated)
    done = (terminated | truncated).astype(jnp.asarray(like.done).dtype)
    return state.replace(done=done, info=_told(state.info, truncated))


@cut_episode.register
def _(state: State, at_limit: Flag, *, like: Any) -> State:
    truncated = state.truncated | (at_limit & ~state.terminated)
    return state.replace(truncated=truncated, info=_told(state.info, truncated))


def _told(info: Mapping[str, Any], truncated: Flag) -> dict[str, Any]:
    return {**info, "truncated": truncated}


def _flag(value: Any) -> Flag:
    return jnp.asarray(value).astype(jnp.bool_)
