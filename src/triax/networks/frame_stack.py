"""The last frames side by side: the simplest memory."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from triax.core.numbers import check_count
from triax.networks.history import Past, Specs, push
from triax.networks.inputs import check_carry, check_old_carry
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, StatefulModuleOutput
from triax.networks.unrolling import check_sequence, select


class FrameStack(StatefulModule):
    """The last ``num_frames`` inputs joined on the last axis, oldest first; ``[batch]`` leaves become
    ``[batch, n]``.

    An image ``[batch, height, width, channels]`` comes out with ``num_frames * channels`` channels. Before an
    episode has that many frames, its first one stands for the missing ones (``padding="reset"``), or zeros do
    (``"zero"``); frames of two episodes never mix. ``sample_input`` is as for :class:`Delay`.

    The carry is ``{"buffer": tree of [batch, num_frames - 1, *leaf], "empty": [batch] bool}``.
    """

    def __init__(self, sample_input: Any, num_frames: int, *, padding: str = "reset"):
        if padding not in ("reset", "zero"):
            raise ValueError(f"FrameStack: padding must be 'reset' or 'zero'; got {padding!r}.")
        self.num_frames, self.padding = check_count("FrameStack", "num_frames", num_frames), padding
        self.specs = Specs("FrameStack", sample_input)

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        x = self.specs.cast(x, 1)
        check_carry(self, state, self._carried(), jax.tree.leaves(x)[0].shape[:1])
        buffer = state["buffer"]
        if self.padding == "reset":
            first = jax.tree.map(lambda leaf: leaf[:, None], x)
            buffer = select(state["empty"], first, buffer)
        old = [jax.tree.map(lambda b, i=i: b[:, i], buffer) for i in range(self.num_frames - 1)]
        return plain(self._join([*old, x]), _carry(push(buffer, x), state["empty"]))

    def initialize_state(self, batch_size: int) -> ModuleState:
        """Buffers of zeros, marked as empty."""
        return self._fresh((batch_size,))

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """Buffers of zeros, marked as empty."""
        return self._fresh(check_old_carry(self, prev_state, self._carried()))

    def _fresh(self, lead: tuple[int, ...]) -> ModuleState:
        zeros = (0,) * len(self.specs.leaves)
        return {"buffer": self.specs.full((*lead, self.num_frames - 1), zeros), "empty": jnp.ones(lead, bool)}

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence: shifts along time that stop at the starts of episodes."""
        check_sequence(self, state, xs, resets)
        if not resets.shape[0]:
            return super().unroll(state, xs, resets, rollout_extras)
        xs = self.specs.cast(xs, 2)
        check_carry(self, state, self._carried(), resets.shape[1:])
        starts = jnp.asarray(resets).at[0].set(resets[0] | state["empty"])
        past = Past(state["buffer"], xs, starts, jax.tree.map(jnp.zeros_like, xs))
        if self.padding == "reset":
            past.fill = jax.tree.map(lambda x: _at_time(x, jnp.maximum(past.starts, 0)), xs)
        old = [past.lagged(lag) for lag in range(self.num_frames - 1, 0, -1)]
        return plain(self._join([*old, xs]), _carry(past.buffer(), state["empty"]), resets.shape)

    def _carried(self) -> list[tuple[int, ...]]:
        """Shapes in the carry, without batch axis."""
        return [*self.specs.shapes(self.num_frames - 1), ()]

    def _join(self, frames: list[Any]) -> Any:
        """Side by side on the last axis; numbers get an axis first."""
        columns = [jax.tree.leaves(frame) for frame in frames]
        joined = [
            jnp.concatenate(leaves, axis=-1) if shape else jnp.stack(leaves, axis=-1)
            for (shape, _), *leaves in zip(self.specs.leaves, *columns, strict=True)
        ]
        return jax.tree.unflatten(self.specs.treedef, joined)


def _carry(buffer: Any, empty: Array) -> ModuleState:
    return {"buffer": buffer, "empty": jnp.zeros_like(empty)}


def _at_time(x: Array, times: Array) -> Array:
    """``x[times[t, b], b]`` for each step and environment."""
    return jnp.take_along_axis(x, times.reshape(times.shape + (1,) * (x.ndim - 2)), axis=0)
