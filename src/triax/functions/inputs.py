"""What goes into a function: preprocessing of clean elements, and examples to initialise with."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from gymnasium.spaces import Discrete, Space
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions.evaluate import Preprocessor
from triax.spaces import check_space, sample_batch


@dataclass(frozen=True)
class InputSpec:
    """What goes into a function: examples by name (``S``, ``A``), preprocessed, of any batch size."""

    make: Callable[[int], dict[str, PyTree]]
    accepts: tuple[tuple[str, ...], ...]
    num_actions: int | None = None

    def example(self, names: tuple[str, ...], batch_size: int) -> tuple[PyTree, ...]:
        """Random members of the spaces, as ``func`` gets them."""
        made = self.make(batch_size)
        return tuple(made[name] for name in names)

    def per_action(self, names: tuple[str, ...]) -> int | None:
        """The number of actions that a function of these inputs answers for at once, if it is type 2."""
        return self.num_actions if names == ("S",) else None


def space_of(env: Any, argument: str, *, who: str) -> Any:
    """``env.<argument>``, checked.

    Raises:
        TypeError: it is missing, or no supported Gymnasium space.
    """
    space = getattr(env, argument, None)
    check_space(space, who=who, argument=f"env.{argument}")
    return space


def prepare_state(observe: Preprocessor, rng: Key, s: Any) -> tuple:
    """``(S,)`` from one clean observation; traceable."""
    return (observe(rng, s),)


def prepare_state_action(observe: Preprocessor, act: Preprocessor, rng: Key, s: Any, a: Any) -> tuple:
    """``(S, A)`` from one clean observation and one clean action; traceable."""
    rng_s, rng_a = jax.random.split(rng)
    return observe(rng_s, s), act(rng_a, a)


def preprocess_each(preprocess: Preprocessor, X: PyTree, *, who: str, argument: str) -> PyTree:
    """A batch of clean elements, each preprocessed on its own, so that ``preprocess`` need not know batches.

    Raises:
        TypeError: it adds no batch axis; the message names ``argument``.
    """
    rows = jax.vmap(partial(preprocess, jax.random.PRNGKey(0)))(X)
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(rows)]
    if not shapes or any(shape[:1] != (1,) for shape in shapes):
        raise TypeError(
            f"{who}: {argument} must turn one element into a batch of one, leaves (1, ...); got leaves of the shapes"
            f" {shapes}. Try x[None], or jnp.expand_dims(x, 0)."
        )
    return jax.tree.map(lambda leaf: leaf[:, 0], rows)


def preprocess_alike(space: Space, *preprocessors: Preprocessor) -> bool:
    """Whether all give the same trees and values, to 1e-5, for a few members of ``space``."""
    first, *others = preprocessors
    if all(other == first for other in others):
        return True
    rng, X = jax.random.PRNGKey(0), sample_batch(space, 8, 0)
    expected = first(rng, X)
    return all(_same(expected, other(rng, X)) for other in others)


def _same(a: PyTree, b: PyTree) -> bool:
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.shape(x) == np.shape(y) and np.allclose(x, y, atol=1e-5) for x, y in pairs)


def state_inputs(space: Space, observe: Preprocessor, *, who: str) -> InputSpec:
    """The input of a function of the state."""

    def make(batch_size: int) -> dict[str, PyTree]:
        S = sample_batch(space, batch_size, 0)
        return {"S": preprocess_each(observe, S, who=who, argument="observation_preprocessor")}

    return InputSpec(make, (("S",),))


def state_action_inputs(
    observation_space: Space, action_space: Space, observe: Preprocessor, act: Preprocessor, *, who: str
) -> InputSpec:
    """The inputs of a function of state and action; type 2 is possible for ``Discrete`` actions."""

    def make(batch_size: int) -> dict[str, PyTree]:
        S, A = sample_batch(observation_space, batch_size, 0), sample_batch(action_space, batch_size, 1)
        return {
            "S": preprocess_each(observe, S, who=who, argument="observation_preprocessor"),
            "A": preprocess_each(act, A, who=who, argument="action_preprocessor"),
        }

    if isinstance(action_space, Discrete):
        return InputSpec(make, (("S", "A"), ("S",)), int(action_space.n))
    return InputSpec(make, (("S", "A"),))
