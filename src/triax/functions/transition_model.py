"""``TransitionModel``: the next observation as a deterministic function of state and action."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions.approximator import Carry
from triax.functions.evaluate import Preprocessor, evaluator, flatten_actions, with_carry
from triax.functions.example_data import ModelTypes, model_type_examples
from triax.functions.outputs import TreeOutput
from triax.functions.state_action_function import StateActionFunction
from triax.functions.stochastic_state_action import rows_of
from triax.proba_dists import ProbaDist
from triax.spaces import check_space, decoder, sample_batch


class TransitionModel(StateActionFunction):
    """The next observation, :math:`s'(s, a)`, in the raw form that the observation preprocessor gives.

    By default observations are preprocessed as ``ProbaDist(observation_space)`` does (a bounded ``Box`` becomes
    unbounded reals), not as ``V`` and ``Q`` do: pass ``observation_preprocessor=p.observation_preprocessor`` to those
    that work on its output.

    Args:
        func: type 1 ``func(S, A, is_training)`` returns a pytree like ``S``; type 2 ``func(S, is_training)`` the same
            with an axis of ``n`` actions after the batch axis; in any of the four forms of :func:`lift`.
        env: anything with ``observation_space`` and ``action_space``.
        observation_preprocessor: ``f(rng, s) -> S``, traceable.
        observation_postprocessor: ``f(rng, S, index=0, batch_mode=False) -> s``, on the host.
        action_preprocessor, random_seed: as in :class:`Q`.

    Raises:
        TypeError: as for ``Q``; structure or shapes of the output differ from those of ``S``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"transition"})

    def __init__(
        self,
        func: Any,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        observation_postprocessor: Callable | None = None,
        action_preprocessor: Preprocessor | None = None,
        random_seed: int | None = None,
    ) -> None:
        check_space(env.observation_space, who=type(self).__name__, argument="observation_space")
        dist = ProbaDist(env.observation_space)
        observe = observation_preprocessor or dist.preprocess_variate
        self.observation_postprocessor = observation_postprocessor or dist.postprocess_variate
        self._set_up_state_action(
            func,
            env,
            observation_output(env.observation_space, observe),
            observation_preprocessor=observe,
            action_preprocessor=action_preprocessor,
            random_seed=random_seed,
        )
        self._set_up_calls(dist, observation_postprocessor)

    def _set_up_calls(self, dist: ProbaDist, postprocess: Callable | None) -> None:
        """The default postprocessor is traceable and runs inside the call; a given one runs on the host."""
        decode = (lambda rng, X: X) if postprocess else dist.decode
        to_member = decoder(dist.space)
        self._to_member = (lambda X: _postprocess_row(postprocess, X)) if postprocess else to_member
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
        check_space(env.observation_space, who=f"{cls.__name__}.example_data", argument="observation_space")
        observe = observation_preprocessor or ProbaDist(env.observation_space).preprocess_variate
        return model_type_examples(
            env,
            observation_output(env.observation_space, observe),
            owner=cls.__name__,
            observation_preprocessor=observe,
            action_preprocessor=action_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )


def observation_output(space: Any, observe: Preprocessor) -> TreeOutput:
    """The declaration that a function returns a preprocessed observation."""

    def make(rng: Key, batch_size: int) -> PyTree:
        like = jax.eval_shape(lambda: observe(rng, sample_batch(space, batch_size, 0)))
        leaves, structure = jax.tree.flatten(like)
        keys = jax.random.split(rng, len(leaves))
        noise = [jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
        return jax.tree.unflatten(structure, noise)

    return TreeOutput(make, "a next observation in the form of S")


def _postprocess_row(postprocess: Callable, X: PyTree) -> Any:
    return postprocess(jax.random.PRNGKey(0), jax.tree.map(lambda leaf: leaf[None], X))
