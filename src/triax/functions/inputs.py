"""What goes into a function: preprocessing of clean elements, and examples to initialise with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from gymnasium.spaces import Discrete, Space
from jaxtyping import PyTree

from triax.core import random
from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import Key
from triax.functions.evaluate import Preprocessor
from triax.spaces import batch_encoder, check_space, encoder, sample_batch
from triax.spaces.checks import describe


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

    @contextmanager
    def noted_on_errors(self, owner: str, names: tuple[str, ...]) -> Iterator[None]:
        """Errors that ``func`` raises say what it was called with."""
        try:
            yield
        except Exception as error:
            made = self.make(1)
            shown = "".join(f" {name} = {jax.eval_shape(lambda x=made[name]: x)}." for name in names)
            error.add_note(
                f"{owner}: func failed on {owner}.example_data(...), which has the inputs that it will be called with;"
                f" for a batch of one:{shown}"
            )
            raise

    def per_action(self, names: tuple[str, ...]) -> int | None:
        """The number of actions that a function of these inputs answers for at once, if it is type 2."""
        return self.num_actions if names == ("S",) else None


def space_of(env: Any, argument: str, *, who: str) -> Any:
    """``env.<argument>``, checked.

    Raises:
        TypeError: it is missing, or no supported Gymnasium space.
    """
    refuse_unmade_env(who, env)
    space: Any = getattr(env, argument, None)
    if space is None:
        _refuse_other_things(env, who)
    elif hasattr(env, f"single_{argument}"):
        raise TypeError(
            f"{who}: env must be a single environment; got a vector environment, whose {argument} is that of all"
            f" together, {describe(space)}. Pass one of its environments, gymnasium.make(...); each has the {argument}"
            f" {describe(getattr(env, f'single_{argument}'))}."
        )
    check_space(space, who=who, argument=f"env.{argument}")
    return space


def _refuse_other_things(env: Any, who: str) -> None:
    """What is passed as an environment by mistake; ``TypeError``."""
    if callable(env):
        name = getattr(env, "__name__", type(env).__name__)
        raise TypeError(f"{who}: env must be an environment; got {name}. env comes second: {who}(func, env, ...).")


def input_encoder(space: Space, *, who: str, argument: str) -> Callable[[Any], PyTree]:
    """The encoder of one element, whose error knows a batch of them when it sees one."""
    encode = encoder(space, who=who, argument=argument)
    encode_batch = batch_encoder(space, who=who, argument=argument)

    def encode_one(x: Any) -> PyTree:
        try:
            return encode(x)
        except ValueError as error:
            try:
                size = jax.tree.leaves(encode_batch(x))[0].shape[0]
            except (ValueError, TypeError, IndexError):
                raise error from None
            raise ValueError(
                f"{error} This is a batch of {size}; a call takes one. For batches use the pure functions:"
                " f.function(f.params, f.function_state, f.rng, f.observation_preprocessor(f.rng, s), False),"
                " f.function_type2 for all actions, f.sample_func for samples; with memory f.sequence()."
            ) from None

    return encode_one


def prepare_state(observe: Preprocessor, rng: Key, s: Any) -> tuple:
    """``(S,)`` from one clean observation; traceable."""
    return (observe(rng, s),)


def prepare_state_action(observe: Preprocessor, act: Preprocessor, rng: Key, s: Any, a: Any) -> tuple:
    """``(S, A)`` from one clean observation and one clean action; traceable."""
    rng_s, rng_a = random.split(rng)
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
