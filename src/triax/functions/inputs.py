"""What goes into a function: preprocessing of clean elements, and examples to initialise with."""

from typing import Any

import jax
from gymnasium.spaces import Discrete, Space
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions.approximator import InputSpec
from triax.functions.evaluate import Preprocessor
from triax.spaces import sample_batch


def prepare_state(observe: Preprocessor, rng: Key, s: Any) -> tuple:
    """``(S,)`` from one clean observation; traceable."""
    return (observe(rng, s),)


def prepare_state_action(observe: Preprocessor, act: Preprocessor, rng: Key, s: Any, a: Any) -> tuple:
    """``(S, A)`` from one clean observation and one clean action; traceable."""
    rng_s, rng_a = jax.random.split(rng)
    return observe(rng_s, s), act(rng_a, a)


def state_inputs(space: Space, observe: Preprocessor) -> InputSpec:
    """The input of a function of the state."""

    def make(batch_size: int) -> dict[str, PyTree]:
        return {"S": observe(jax.random.PRNGKey(0), sample_batch(space, batch_size, 0))}

    return InputSpec(make, (("S",),))


def state_action_inputs(
    observation_space: Space, action_space: Space, observe: Preprocessor, act: Preprocessor
) -> InputSpec:
    """The inputs of a function of state and action; type 2 is possible for ``Discrete`` actions."""

    def make(batch_size: int) -> dict[str, PyTree]:
        rng = jax.random.PRNGKey(0)
        return {
            "S": observe(rng, sample_batch(observation_space, batch_size, 0)),
            "A": act(rng, sample_batch(action_space, batch_size, 1)),
        }

    if isinstance(action_space, Discrete):
        return InputSpec(make, (("S", "A"), ("S",)), int(action_space.n))
    return InputSpec(make, (("S", "A"),))
