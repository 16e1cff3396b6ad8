"""Example inputs and outputs of a function: what ``func`` is called with and what it must return."""

from typing import Any, NamedTuple

import jax
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.core.printing import pretty_repr
from triax.functions.evaluate import Preprocessor
from triax.functions.outputs import Output
from triax.spaces import check_space, default_preprocessor, sample_batch


class ArgsType1(NamedTuple):
    """The arguments of ``func(S, A, is_training)``."""

    S: Any
    A: Any
    is_training: bool

    def __repr__(self) -> str:
        return pretty_repr(self)


class ArgsType2(NamedTuple):
    """The arguments of ``func(S, is_training)``."""

    S: Any
    is_training: bool

    def __repr__(self) -> str:
        return pretty_repr(self)


class Inputs(NamedTuple):
    """Arguments that unpack into ``func``, and which of them are static."""

    args: ArgsType1 | ArgsType2
    static_argnums: tuple[int, ...]

    def __repr__(self) -> str:
        return pretty_repr(self)


class ExampleData(NamedTuple):
    """Inputs of ``func`` and an output of the right structure, shapes and dtypes (standard-normal noise)."""

    inputs: Inputs
    output: Any

    def __repr__(self) -> str:
        return pretty_repr(self)


class ModelTypes(NamedTuple):
    """Example data for both forms of a function of state and action; ``type2`` is ``None`` unless ``Discrete``."""

    type1: ExampleData
    type2: ExampleData | None

    def __repr__(self) -> str:
        return pretty_repr(self)


def model_type_examples(
    env: Any,
    output: Output,
    *,
    owner: str,
    observation_preprocessor: Preprocessor | None,
    action_preprocessor: Preprocessor | None,
    batch_size: int,
    random_seed: int | None,
) -> ModelTypes:
    """Example data of a function of state and action, in both forms where both exist."""
    S, A = (
        _example(space, preprocessor, batch_size, random_seed, owner, argument)
        for space, preprocessor, argument in (
            (env.observation_space, observation_preprocessor, "observation_space"),
            (env.action_space, action_preprocessor, "action_space"),
        )
    )
    rng = jax.random.PRNGKey(0 if random_seed is None else random_seed)
    type1 = ExampleData(Inputs(ArgsType1(S, A, True), static_argnums=(2,)), output.example(rng, batch_size))
    if not isinstance(env.action_space, Discrete):
        return ModelTypes(type1, None)
    type2 = ExampleData(
        Inputs(ArgsType2(S, True), static_argnums=(1,)),
        output.example(rng, batch_size, int(env.action_space.n)),
    )
    return ModelTypes(type1, type2)


def state_examples(
    env: Any,
    output: Output,
    *,
    owner: str,
    observation_preprocessor: Preprocessor | None,
    batch_size: int,
    random_seed: int | None,
) -> ExampleData:
    """Example data of a function of the state."""
    S = _example(env.observation_space, observation_preprocessor, batch_size, random_seed, owner, "observation_space")
    rng = jax.random.PRNGKey(0 if random_seed is None else random_seed)
    inputs = Inputs(ArgsType2(S, True), static_argnums=(1,))
    return ExampleData(inputs, output.example(rng, batch_size))


def _example(
    space: Any,
    preprocessor: Preprocessor | None,
    batch_size: int,
    random_seed: int | None,
    owner: str,
    argument: str,
) -> PyTree:
    check_space(space, who=f"{owner}.example_data", argument=argument)
    preprocess = preprocessor or default_preprocessor(space)
    return preprocess(jax.random.PRNGKey(0), sample_batch(space, batch_size, random_seed))
