"""The protocol of layers that may remember: one step, a whole sequence, reset, statistics."""

import abc
from typing import Any, ClassVar

import jax
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool

from triax.networks.description import describe_module
from triax.networks.step_checks import with_checked_batch_size, with_checked_output, with_checked_reset
from triax.networks.types import ModuleState, StatefulModuleOutput
from triax.networks.unrolling import check_sequence, map_steps, scan_steps, select


class StatefulModule(nnx.Module, abc.ABC):
    """A layer that may have a carry: what it remembers within an episode.

    A call sees one step: leaves ``[batch, *features]``. Parameters and running statistics are variables of
    the module and have no batch axis; the carry is passed in and returned, and every leaf of it has one. A
    forward pass never writes a variable that a forward pass reads (counters of RNG streams may advance).

    A subclass with a carry implements :meth:`initialize_state` and :meth:`reset_state`; one without the
    second is refused with a ``TypeError``, since its memory would cross the ends of episodes. Each call is
    checked while it is traced: ``TypeError`` for another output than a :class:`StatefulModuleOutput`,
    ``ValueError`` for a ``next_state`` of another tree, shape or dtype than the state that came in; likewise what
    ``reset_state`` gives.
    """

    has_parts: ClassVar[bool] = False
    """Whether a sequence can be unrolled part by part, as that of a container."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        has_carry = cls.initialize_state is not StatefulModule.initialize_state
        if has_carry and cls.reset_state is StatefulModule.reset_state:
            raise TypeError(
                f"{cls.__name__} has initialize_state but no reset_state, so its carry would never be reset. "
                "Implement reset_state(self, prev_state), the carry at the start of the next episode; if the carry "
                "is kept on purpose, let it return prev_state."
            )
        if "initialize_state" in cls.__dict__:
            cls.initialize_state = with_checked_batch_size(cls.initialize_state)
        if "reset_state" in cls.__dict__:
            cls.reset_state = with_checked_reset(cls.reset_state)
        call = cls.__dict__.get("__call__")
        if callable(call) and not getattr(call, "__isabstractmethod__", False):
            cls.__call__ = with_checked_output(call)

    @abc.abstractmethod
    def __call__(self, module_state: ModuleState, obs: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step; ``rollout_extras`` are what the same step gave in the rollout, ``None`` there."""

    def __str__(self) -> str:
        """A line for each module inside; ``repr`` has every field of every layer."""
        return describe_module(self)

    def initialize_state(self, batch_size: int) -> ModuleState:
        """The carry at the start of ``batch_size`` episodes; ``()`` where nothing is remembered."""
        return ()

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """The carry at the start of the next episode; also for one environment, without batch axis.

        Shapes come from ``prev_state``; nothing but the RNG keys in it may be visible in the result.
        """
        return prev_state

    def update_statistics(self, rollout_extras: Any) -> None:
        """Learn running statistics from the extras of a rollout, leaves ``[time, batch, *features]``.

        By default there are none. Raises ``TypeError`` if a module inside has some, which nobody would pass on to it.
        """
        learning = ["/".join(map(str, path)) for path, module in nnx.iter_modules(self) if _learns_statistics(module)]
        if learning:
            raise TypeError(
                f"{type(self).__name__}: {learning[0]!r} learns statistics, and nobody passes them on to it. Write "
                "update_statistics(self, rollout_extras), or make it a Container, which does."
            )

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """The same as a call a step, over a sequence with leaves ``[time, batch, ...]``.

        ``resets[t]`` says that an episode starts *at* step ``t``: the carry is replaced by ``reset_state``
        before that step (so, after a rollout, ``resets[t + 1] = done[t]``, and ``resets[0]`` tells whether
        ``state`` is one that has to be replaced). ``next_state`` is the carry after the last step, not reset.
        The loss comes back as ``[time, batch]``; outputs, metrics and extras have a leading ``time`` axis.

        Without carry, time is folded into the batch and the layer runs once (so a scalar loss must not depend
        on the inputs); otherwise it is scanned. One thing is not as in steps: what a layer without carry writes
        into ``nnx.BatchStat`` variables, and normalizes with, are the statistics of all steps, written once.

        A sequence of no steps gives empty outputs and the carry as it was. Raises ``TypeError`` for resets
        that are not boolean, ``ValueError`` where inputs, resets and carry do not fit together.
        """
        check_sequence(self, state, xs, resets)
        if not resets.shape[0]:
            return scan_steps(self, state, xs, resets, rollout_extras)
        if not jax.tree.leaves(state):
            flat = map_steps(self, state, xs, resets, rollout_extras)
            if flat is not None:
                return flat
        return self._unroll_in_order(state, xs, resets, rollout_extras)

    def _unroll_in_order(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], extras: Any
    ) -> StatefulModuleOutput:
        """The sequence of a module that remembers something, or writes variables."""
        return scan_steps(self, state, xs, resets, extras)


def reset_where(module: StatefulModule, state: ModuleState, done: Bool[Array, " batch"]) -> ModuleState:
    """``state`` with the carries of finished environments replaced by fresh ones; ``ValueError`` for another batch."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if np.shape(leaf)[: np.ndim(done)] != np.shape(done):  # would be broadcast
            raise ValueError(
                f"reset_where: done must be [batch] as the carry is; got the shape {list(np.shape(done))}, and "
                f"the carry{jax.tree_util.keystr(path)} has {list(np.shape(leaf))}."
            )
    return select(done, module.reset_state(state), state)


def _learns_statistics(module: nnx.Module) -> bool:
    """Whether it has statistics of its own: what only passes extras on has modules inside."""
    if not isinstance(module, StatefulModule) or type(module).update_statistics is StatefulModule.update_statistics:
        return False
    return not any(isinstance(inner, StatefulModule) for path, inner in nnx.iter_modules(module) if path)
