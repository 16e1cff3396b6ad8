"""A fixed delay: sensors and actuators that lag."""

from typing import Any

import jax
from jaxtyping import Array, Bool

from triax.core.numbers import check_count
from triax.networks.history import Past, Specs, push
from triax.networks.inputs import check_carry, check_old_carry
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, StatefulModuleOutput
from triax.networks.unrolling import check_sequence


class Delay(StatefulModule):
    """The input of ``k_steps`` ago, and ``initial_value`` in the first ``k_steps`` steps of an episode.

    ``k_steps=2``: a b c d -> init init a b. ``sample_input`` is one unbatched example: a pytree of arrays,
    shapes (``jax.ShapeDtypeStruct``) or numbers, of any dtypes. ``initial_value`` is one number for all
    leaves or a tree of the sample's structure with a number for each.

    The carry is ``{"buffer": tree of [batch, k_steps, *leaf]}``, oldest first. Raises ``ValueError`` for
    ``k_steps < 1`` and a sample without arrays, ``TypeError`` for a ``k_steps`` that is no int and for inputs or
    initial values that the sample's dtypes cannot hold.
    """

    def __init__(self, sample_input: Any, k_steps: int, initial_value: Any = 0.0):
        self.k_steps = check_count("Delay", "k_steps", k_steps)
        self.specs = Specs("Delay", sample_input)
        self.initial_values = self.specs.spread(initial_value)

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        x = self.specs.cast(x, 1)
        check_carry(self, state, self.specs.shapes(self.k_steps), jax.tree.leaves(x)[0].shape[:1])
        buffer = state["buffer"]
        oldest = jax.tree.map(lambda b: b[:, 0], buffer)
        return plain(oldest, {"buffer": push(buffer, x)})

    def initialize_state(self, batch_size: int) -> ModuleState:
        """Buffers full of the initial value."""
        return {"buffer": self.specs.full((batch_size, self.k_steps), self.initial_values)}

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """Buffers full of the initial value."""
        batch = check_old_carry(self, prev_state, self.specs.shapes(self.k_steps))
        return {"buffer": self.specs.full((*batch, self.k_steps), self.initial_values)}

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence: a shift along time that stops at the starts of episodes."""
        check_sequence(self, state, xs, resets)
        if not resets.shape[0]:
            return super().unroll(state, xs, resets, rollout_extras)
        check_carry(self, state, self.specs.shapes(self.k_steps), resets.shape[1:])
        fill = self.specs.full(resets.shape, self.initial_values)
        past = Past(state["buffer"], self.specs.cast(xs, 2), resets, fill)
        return plain(past.lagged(self.k_steps), {"buffer": past.buffer()}, resets.shape)
