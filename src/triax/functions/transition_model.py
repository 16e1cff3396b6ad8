"""``TransitionModel``: the next observation as a deterministic function of state and action."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import numpy as np
from gymnasium.spaces import Space
from jaxtyping import PyTree

from triax.core import random
from triax.core.keys import Key
from triax.functions.approximator import Carry
from triax.functions.evaluate import Preprocessor, evaluator, flatten_actions, with_carry
from triax.functions.example_data import ModelTypes, model_type_examples
from triax.functions.inputs import preprocess_each, space_of
from triax.functions.outputs import TreeOutput
from triax.functions.raw_observations import RawObservation
from triax.functions.state_action_function import StateActionFunction
from triax.functions.stochastic_state_action import rows_of
from triax.proba_dists import ProbaDist
from triax.spaces import decoder, sample_batch


class TransitionModel(StateActionFunction):
    """The next observation, :math:`s'(s, a)`, in the raw form that the observation preprocessor gives.

    By default observations are preprocessed as ``ProbaDist(observation_space)`` does (a bounded ``Box`` becomes
    unbounded reals), not as ``V`` and ``Q`` do. In pure programs of your own pass
    ``observation_preprocessor=p.observation_preprocessor`` to those that work on its output.

    Args:
        func: type 1 ``func(S, A, is_training)`` returns a pytree like ``S``; type 2 ``func(S, is_training)`` the same
            with an axis of ``n`` actions after the batch axis; in any of the four forms of :func:`lift`.
        env: anything with ``observation_space`` and ``action_space``.
        observation_preprocessor: ``f(rng, s) -> S``, traceable.
        observation_postprocessor: ``f(rng, S, index=0, batch_mode=False) -> s``, on the host.
        action_preprocessor, random_seed: as in :class:`Q`.

    Raises:
        TypeError: as for ``Q``; structure or shapes of the output differ from those of ``S``; a preprocessor comes
            without postprocessor, and the default one does not undo it.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"transition"})

    _raw_now: RawObservation
    """The form of the observations that it takes ..."""
    _raw_next: RawObservation
    """... and of those that it returns."""

    def __init__(
        self,
        func: Any,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        observation_postprocessor: Callable | None = None,
        action_preprocessor: Preprocessor | None = None,
        random_seed: int | None = None,
    ) -> None:
        who = type(self).__name__
        dist = ProbaDist(space_of(env, "observation_space", who=who))
        observe = observation_preprocessor or dist.preprocess_variate
        self.observation_postprocessor = observation_postprocessor or dist.postprocess_variate
        if observation_postprocessor is None:
            check_round_trip(dist, observe, who=who)
        self._set_up_state_action(
            func,
            env,
            observation_output(dist.space, observe, who=who),
            observation_preprocessor=observe,
            action_preprocessor=action_preprocessor,
            random_seed=random_seed,
        )
        self._raw_now = self._raw_next = RawObservation(observe, None if observation_postprocessor else dist.decode)
        if observation_postprocessor is None:
            self._set_up_calls(dist.decode, decoder(dist.space))
        else:
            self._set_up_calls(lambda rng, X: X, on_host(observation_postprocessor))

    def _set_up_calls(self, decode: Callable, to_member: Callable) -> None:
        """``decode`` runs inside the call, on batches, ``to_member`` on the host, on one row."""
        self._to_member = to_member
        prepare_type1, prepare_type2 = self._prepare()
        self._next_type1 = evaluator(self._forward_type1, prepare_type1, decode)
        self._next_type2 = self._forward_type2 and evaluator(
            self._forward_type2, prepare_type2, flatten_actions(decode)
        )

    def __call__(self, s: Any, a: Any = None, carry: Carry | None = None) -> Any:
        """The next observation, or without action (``Discrete`` only) a list with one per action."""
        call, inputs = self._calls_for(a, self._next_type1, self._next_type2, s)
        result, next_carry = self._run(call, carry, *inputs)
        return with_carry(rows_of(result, a, self._to_member), next_carry, carry)

    @classmethod
    def example_data(
        cls,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        action_preprocessor: Preprocessor | None = None,
        batch_size: int = 1,
        random_seed: int | None = None,
    ) -> ModelTypes:
        """Example inputs and outputs of ``func`` in both forms."""
        who = f"{cls.__name__}.example_data"
        space = space_of(env, "observation_space", who=who)
        observe = observation_preprocessor or ProbaDist(space).preprocess_variate
        return model_type_examples(
            env,
            observation_output(space, observe, who=who),
            who=who,
            observation_preprocessor=observe,
            action_preprocessor=action_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )


def observation_output(space: Space, observe: Preprocessor, *, who: str) -> TreeOutput:
    """The declaration that a function returns a preprocessed observation."""

    def make(rng: Key, batch_size: int) -> PyTree:
        like = jax.eval_shape(lambda: _preprocessed(space, observe, batch_size, who))
        leaves, structure = jax.tree.flatten(like)
        keys = random.split(rng, len(leaves))
        noise = [random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
        return jax.tree.unflatten(structure, noise)

    return TreeOutput(make, "a next observation in the form of S")


def check_round_trip(dist: ProbaDist, observe: Preprocessor, *, who: str) -> None:
    """Raise a ``TypeError`` unless ``dist`` decodes what ``observe`` makes of members of its space."""
    if observe == dist.preprocess_variate:
        return
    X, rng = sample_batch(dist.space, 8, 0), jax.random.PRNGKey(0)
    raw = _preprocessed(dist.space, observe, 8, who)
    try:
        is_undone = all(map(_close, jax.tree.leaves(X), jax.tree.leaves(dist.decode(rng, raw))))
    except ValueError:  # another structure or shape
        is_undone = False
    if not is_undone:
        raise TypeError(
            f"{who}: observation_preprocessor came without observation_postprocessor, and the default one, of"
            " ProbaDist(observation_space), does not undo it. Pass both."
        )


def _preprocessed(space: Space, observe: Preprocessor, batch_size: int, who: str) -> PyTree:
    return preprocess_each(observe, sample_batch(space, batch_size, 0), who=who, argument="observation_preprocessor")


def _close(x: Any, decoded: Any) -> bool:
    tolerance = 1e-3 * max(1e-6, float(np.max(np.abs(x))))
    return np.shape(x) == np.shape(decoded) and np.allclose(x, decoded, rtol=0, atol=tolerance)


def on_host(postprocess: Callable) -> Callable[[PyTree], Any]:
    """A user's ``f(rng, X, index=0, batch_mode=False)`` for one row without batch axis."""
    rng = jax.random.PRNGKey(0)
    return lambda X: postprocess(rng, jax.tree.map(lambda leaf: leaf[None], X))
