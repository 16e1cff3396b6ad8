"""``Q`` and ``RewardFunction``: a value of state and action."""

from collections.abc import Callable
from typing import Any, ClassVar

from jaxtyping import Array, Float, PyTree

from triax.functions.approximator import Carry
from triax.functions.evaluate import Preprocessor, evaluator, host_array, with_carry
from triax.functions.example_data import ModelTypes, model_type_examples
from triax.functions.model_types import Forward
from triax.functions.outputs import ScalarOutput
from triax.functions.state_action_function import StateActionFunction
from triax.losses.value_transforms import ValueTransform, value_transform_of

OUTPUT = ScalarOutput("state-action pair")


class Q(StateActionFunction):
    """The value of an action in a state, :math:`q(s, a)`.

    Args:
        func: type 1, ``func(S, A, is_training) -> [batch]``, for any action space, or type 2,
            ``func(S, is_training) -> [batch, n]``, for ``Discrete`` ones; in any of the four forms of :func:`lift`.
        env: anything with ``observation_space`` and ``action_space``.
        observation_preprocessor: ``f(rng, s) -> S``, traceable; default ``default_preprocessor(observation_space)``.
        action_preprocessor: ``f(rng, a) -> A``, traceable; default ``default_preprocessor(action_space)``. A critic
            of a policy on continuous actions takes ``pi.proba_dist.preprocess_variate``.
        value_transform: a ``ValueTransform`` or a pair ``(f, f_inverse)``: ``func`` estimates ``f(return)``.
        random_seed: decides weights and random numbers; ``None`` draws fresh entropy.

    Raises:
        TypeError: a space is no supported Gymnasium space; ``func`` has other parameter names, is of type 2 without
            ``Discrete`` actions, or returns another shape, dtype or type.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"q"})

    def __init__(
        self,
        func: Any,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        action_preprocessor: Preprocessor | None = None,
        value_transform: Any = None,
        random_seed: int | None = None,
    ) -> None:
        self.value_transform: ValueTransform = value_transform_of(value_transform)
        self._set_up_state_action(
            func,
            env,
            OUTPUT,
            observation_preprocessor=observation_preprocessor,
            action_preprocessor=action_preprocessor,
            random_seed=random_seed,
        )
        self._value_type1, self._value_type2 = value_calls(self)

    @property
    def forward_values(self) -> Forward | None:
        """Pure: the values of all actions ``[batch, n]`` in transformed space; ``None`` unless ``Discrete``."""
        return self._forward_type2

    @staticmethod
    def values_of(output: PyTree) -> Float[Array, "batch n"]:
        """The values of all actions in transformed space, from a type-2 output."""
        return output

    def __call__(self, s: Any, a: Any = None, carry: Carry | None = None) -> Any:
        """``q(s, a)``, a 0-d NumPy array, or ``q(s)``, one value per action ``[n]``; in original units.

        With a carry the result is ``(value, next carry)``.
        """
        call, inputs = self._calls_for(a, self._value_type1, self._value_type2, s)
        value, next_carry = self._run(call, carry, *inputs)
        return with_carry(host_array(value), next_carry, carry)

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
        return model_type_examples(
            env,
            OUTPUT,
            who=f"{cls.__name__}.example_data",
            observation_preprocessor=observation_preprocessor,
            action_preprocessor=action_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )


class RewardFunction(Q):
    """The expected reward of an action in a state, :math:`r(s, a)`: arguments and calls as in :class:`Q`."""

    kinds: ClassVar[frozenset[str]] = frozenset({"q", "reward"})


def value_calls(q: Any) -> tuple[Callable, Callable | None]:
    """The jitted calls behind ``q(s, a)`` and ``q(s)``; the second is ``None`` unless actions are ``Discrete``."""
    inverse = q.value_transform.inverse_func
    prepare_type1, prepare_type2 = q._prepare()

    def finish(rng: Any, output: Any) -> Any:
        return inverse(output)

    type2 = q._forward_type2 and evaluator(q._forward_type2, prepare_type2, finish)
    return evaluator(q._forward_type1, prepare_type1, finish), type2
