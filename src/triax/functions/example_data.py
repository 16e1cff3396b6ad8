"""Example inputs and outputs of a function: what ``func`` is called with and what it must return."""

from typing import Any, NamedTuple

from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.core.keys import make_key
from triax.core.printing import pretty_repr
from triax.functions.evaluate import Preprocessor
from triax.functions.inputs import preprocess_each, space_of
from triax.functions.outputs import Output
from triax.spaces import default_preprocessor, sample_batch


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
    who: str,
    observation_preprocessor: Preprocessor | None,
    action_preprocessor: Preprocessor | None,
    batch_size: int,
    random_seed: int | None,
) -> ModelTypes:
    """Example data of a function of state and action, in both forms where both exist."""
    sizes = {"who": who, "batch_size": batch_size, "random_seed": random_seed}
    S = _example(env, "observation", observation_preprocessor, **sizes)
    A = _example(env, "action", action_preprocessor, **sizes)
    rng = make_key(random_seed)
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
    who: str,
    observation_preprocessor: Preprocessor | None,
    batch_size: int,
    random_seed: int | None,
) -> ExampleData:
    """Example data of a function of the state."""
    S = _example(env, "observation", observation_preprocessor, who=who, batch_size=batch_size, random_seed=random_seed)
    inputs = Inputs(ArgsType2(S, True), static_argnums=(1,))
    return ExampleData(inputs, output.example(make_key(random_seed), batch_size))


def _example(
    env: Any, what: str, preprocessor: Preprocessor | None, *, who: str, batch_size: int, random_seed: int | None
) -> PyTree:
    """Random members of the observation or action space, preprocessed."""
    space = space_of(env, f"{what}_space", who=who)
    X = sample_batch(space, batch_size, random_seed)
    return preprocess_each(preprocessor or default_preprocessor(space), X, who=who, argument=f"{what}_preprocessor")
