"""What modules hand to each other: outputs of a step and of an actor-critic, and an error for sizes."""

import dataclasses
import threading
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

import jax

ModuleState = Any
"""The carry of a module: any pytree whose leaves have a leading batch axis; ``()`` without memory."""

D = TypeVar("D", bound="JaxDataclass")

ACTIVATION_KEY = "__activation__"
"""Where a recorder puts a module's output in its metrics."""


_REGISTRATION = threading.Lock()


@dataclass_transform(frozen_default=True)
class JaxDataclass:
    """Base of frozen dataclasses that are pytrees: every field is a child, with its name in key paths.

    Fields are not checked when a pytree is rebuilt, so they may hold tracers or placeholders. A subclass may also say
    ``@dataclass(frozen=True)`` and ``@jax.tree_util.register_pytree_node_class``; it need not.
    """

    _is_registered = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        factories = {name: value for name, value in vars(cls).items() if isinstance(value, dataclasses.Field)}
        dataclass(frozen=True)(cls)
        for name in ("__setattr__", "__delattr__"):  # a second @dataclass refuses to replace them
            delattr(cls, name)
        for name, field in factories.items():  # and would miss these
            setattr(cls, name, field)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A registered object; classes are registered at their first, when their decorators have been."""
        if "_is_registered" not in vars(cls):
            _register(cls)
        return super().__new__(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(cls))  # pyright: ignore[reportArgumentType]

    def _flatten_with_keys(self) -> tuple[tuple, tuple[str, ...]]:
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in self._names())
        return children, self._names()

    def tree_flatten(self) -> tuple[tuple, tuple[str, ...]]:
        """The values of the fields and their names."""
        return tuple(getattr(self, name) for name in self._names()), self._names()

    @classmethod
    def tree_unflatten(cls: type[D], names: tuple[str, ...], children: Any) -> D:
        """The inverse of :meth:`tree_flatten`."""
        new = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(new, name, child)
        return new

    def replace(self: D, **kwargs: Any) -> D:
        """A copy with other values in the fields that are named."""
        return dataclasses.replace(self, **kwargs)  # pyright: ignore[reportArgumentType]


def _register(cls: type[JaxDataclass]) -> None:
    with _REGISTRATION:
        if jax.tree_util.all_leaves([object.__new__(cls)]):
            jax.tree_util.register_pytree_with_keys(
                cls, cls._flatten_with_keys, cls.tree_unflatten, flatten_func=JaxDataclass.tree_flatten
            )
        cls._is_registered = True


class StatefulModuleOutput(JaxDataclass):
    """What one step (leaves ``[batch, ...]``) or one sequence (``[time, batch, ...]``) of a module gives."""

    next_state: ModuleState
    """The carry after the last step; the same tree, shapes and dtypes as the one that came in."""
    output: Any
    """Any pytree."""
    regularization_loss: Any
    """Scalar or ``[batch]``; ``[time, batch]`` from ``unroll``. Added to the loss with weight one."""
    metrics: Any
    """Arrays for logging, in nested dicts."""
    rollout_extras: Any = None
    """What this step hands to the replay and to ``update_statistics``; mirrors the tree of the carry."""


class PPONetworkOutput(JaxDataclass):
    """What a network that PPO drives gives as its ``output``."""

    actions: Any
    """Pytree for the environment."""
    loglikelihoods: Any
    """``[batch]`` in nats, or a dict of such."""
    value_estimates: Any
    """The tree and the shapes of the reward."""


class SizeError(ValueError):
    """The features that a layer gets are not as many as it takes; containers add the names of both layers."""

    def __init__(self, taker: str, expected: int, got: int, giver: str | None = None, *, inside: bool = False):
        self.taker, self.expected, self.got, self.giver, self.inside = taker, expected, got, giver, inside
        source = f"{giver} gives {got}" if giver else f"got {got}"
        super().__init__(
            f"{taker}: takes {expected} features on the last axis; {source}. "
            "Give both layers the same size, or put a Dense layer or a Flattener between them."
        )

    def located(self, place: str, giver: str | None) -> "SizeError":
        """The same error seen from the container in which ``place`` is the child that failed."""
        taker = f"{place}/{self.taker}" if self.inside else f"{place} ({self.taker})"
        return SizeError(taker, self.expected, self.got, self.giver or giver, inside=True)
