"""Environments by name."""

import importlib
from typing import Any

import gymnasium

from triax.envs.registration import REGISTERED_BY_TRIAX

_MAKERS = {
    "gymnax": ("triax.envs.gymnax_env", "make"),
    "brax": ("triax.envs.mujoco", "make_brax"),
    "playground": ("triax.envs.mujoco", "make_playground"),
}


def make(id: str, **kwargs: Any) -> Any:
    """The environment of that name; every one has a Gymnasium ``observation_space`` and ``action_space``.

    ===================  ==========  ===========================================================================
    ``id``               extra       ``kwargs``
    ===================  ==========  ===========================================================================
    ``gymnax:NAME``      ``gymnax``  ``params``: a dict of changes to its parameters; others to ``gymnax.make``
    ``brax:NAME``        ``mujoco``  ``episode_length`` (1000), ``action_repeat`` (1); others to its constructor
    ``playground:NAME``  ``mujoco``  ``episode_length`` (its config's), ``config``, ``config_overrides``
    any other            none        of ``gymnasium.make``, which makes it
    ===================  ==========  ===========================================================================

    The first three are JAX environments, ``reset(rng)`` and ``step(state, action)`` with states of
    :class:`triax.envs.State`; they end at their time limit and do not reset themselves. Nothing is registered
    or kept: two calls give two environments.

    Raises ``MissingExtraError`` when the package is not installed, ``ValueError`` for a name it does not have.
    """
    if not isinstance(id, str):
        raise TypeError(f"triax.envs.make: id must be a string; got {id!r}.")
    prefix, colon, name = id.partition(":")
    if colon and prefix in _MAKERS:
        module, function = _MAKERS[prefix]
        return getattr(importlib.import_module(module), function)(name, **kwargs)
    if id in REGISTERED_BY_TRIAX and id not in gymnasium.registry:
        raise ValueError(f"triax.envs.make: {id} is not registered. Try triax.envs.register_environments() first.")
    return gymnasium.make(id, **kwargs)
