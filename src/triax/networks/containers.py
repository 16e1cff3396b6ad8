"""Containers: in sequence, side by side, one child a key."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from triax.networks.container import Container, Run
from triax.networks.module import StatefulModule
from triax.networks.plain import Stateless, declared_features
from triax.networks.types import ModuleState, SizeError, StatefulModuleOutput


class Sequential(Container):
    """One layer after another: ``layers`` is a sequence, or a mapping from names to layers.

    Layers of a sequence are named by what they are and where they stand: ``dense_0``, ``lstm_1``. Carry and
    extras are lists by position, metrics a dict by name. No layers: the identity. ``net[i]`` and
    ``net.layers`` give them.
    """

    def __init__(self, layers: Sequence[Any] | Mapping[str, Any]):
        if not isinstance(layers, Iterable | Sequential) or isinstance(layers, str):
            raise TypeError(f"Sequential: layers must be a list of layers, or a dict; got a {type(layers).__name__}.")
        named = layers if isinstance(layers, Mapping) else {_name(i, x): x for i, x in enumerate(layers)}
        self._adopt(named)
        self._check_widths()

    def _check_widths(self) -> None:
        for giver, taker in itertools.pairwise(self.names):
            got = declared_features(self.components[giver], "out_features")
            expected = declared_features(self.components[taker], "in_features")
            if got is not None and expected is not None and got != expected:
                raise SizeError(f"Sequential: {taker}", expected, got, giver)

    def __call__(self, network_state: ModuleState, obs: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        return super().__call__(network_state, obs, rollout_extras)

    def wire(self, run: Run, x: Any) -> Any:
        """The chain."""
        for name in self.children:
            x = run(name, x)
        return x

    @property
    def layers(self) -> tuple[StatefulModule, ...]:
        """The layers in order."""
        return tuple(self.children.values())

    def __getitem__(self, index: int) -> StatefulModule:
        return self.layers[index]

    def __len__(self) -> int:
        return len(self.names)

    def pack(self, by_name: dict[str, Any]) -> list:
        """By position."""
        return list(by_name.values())

    def unpack(self, packed: ModuleState, what: str) -> dict[str, Any]:
        """By name; raises ``ValueError`` for another number of entries."""
        if not isinstance(packed, Sequence) or len(packed) != len(self.names):
            got = f"{len(packed)} entries" if isinstance(packed, Sequence) else type(packed).__name__
            raise ValueError(
                f"Sequential: the {what} must be a list with an entry for each of {list(self.names)}; got "
                f"{got}. "
                "Is it that of another network?"
            )
        return dict(zip(self.names, packed, strict=True))


def _name(position: int, layer: Any) -> str:
    inner = layer.layer if isinstance(layer, Stateless) else layer
    name = getattr(inner, "__name__", type(inner).__name__)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return f"{'function' if name == '<lambda>' else snake}_{position}"


class Parallel(Container):
    """The same input to every child; the outputs by name."""

    def wire(self, run: Run, x: Any) -> dict[str, Any]:
        """Side by side."""
        return {name: run(name, x) for name in self.children}


class Map(Container):
    """``x[name]`` to child ``name``; the outputs by name. Other keys of ``x`` are ignored, missing ones a
    ``KeyError``.
    """

    def wire(self, run: Run, x: Any) -> dict[str, Any]:
        """Key by key."""
        self._check_keys(x)
        return {name: run(name, x[name]) for name in self.children}

    def _check_keys(self, x: Any) -> None:
        got = list(x) if isinstance(x, Mapping) else type(x).__name__
        for name in self.names:
            if not isinstance(x, Mapping) or name not in x:
                raise KeyError(
                    f"{type(self).__name__}: no input for child {name!r}: the input must be a dict with the "
                    "keys "
                    f"{list(self.names)}; got {got}."
                )


class Concat(Map):
    """As :class:`Map`, with the outputs joined on the last axis in the declared order."""

    def wire(self, run: Run, x: Any) -> Any:
        """Key by key, then side by side."""
        parts = super().wire(run, x)
        for name, part in parts.items():
            if jnp.ndim(part) < 2:
                raise ValueError(f"Concat: child {name!r} must give [batch, features]; got {list(jnp.shape(part))}.")
        return jnp.concatenate([parts[name] for name in self.names], axis=-1)


class Merge(Container):
    """The same input to every child; each gives a dict, and one dict of all their entries comes out.

    Raises ``TypeError`` for a child that gives no dict and ``ValueError`` for a key that two children give.
    """

    def wire(self, run: Run, x: Any) -> dict[str, Any]:
        """Side by side, then into one dict."""
        merged: dict[str, Any] = {}
        givers: dict[str, str] = {}
        for name in self.children:
            part = run(name, x)
            if not isinstance(part, Mapping):
                raise TypeError(f"Merge: child {name!r} must give a dict; got {type(part).__name__}.")
            for key, value in part.items():
                if givers.setdefault(key, name) != name:
                    raise ValueError(f"Merge: the key {key!r} comes from both {givers[key]!r} and {name!r}.")
                merged[key] = value
        return merged
