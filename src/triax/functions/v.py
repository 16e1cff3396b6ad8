"""``V``: the value of a state."""

from functools import partial
from typing import Any, ClassVar

from triax.functions.approximator import Approximator, Carry
from triax.functions.evaluate import Preprocessor, evaluator, host_array, with_carry
from triax.functions.example_data import ExampleData, state_examples
from triax.functions.inputs import prepare_state, state_inputs
from triax.functions.outputs import ScalarOutput
from triax.losses.value_transforms import ValueTransform, value_transform_of
from triax.spaces import check_space, default_preprocessor, encoder


class V(Approximator):
    """The value of a state, :math:`v(s)`.

    Args:
        func: ``func(S, is_training) -> [batch]`` floats, in any of the four forms of :func:`lift`.
        env: anything with ``observation_space``.
        observation_preprocessor: ``f(rng, s) -> S``, traceable; default ``default_preprocessor(observation_space)``.
        value_transform: a ``ValueTransform`` or a pair ``(f, f_inverse)``: ``func`` estimates ``f(return)``.
        random_seed: decides weights and random numbers; ``None`` draws fresh entropy.

    Raises:
        TypeError: a space is no supported Gymnasium space; ``func`` has other parameter names, or returns
            another shape, dtype or type than ``[batch]`` floats.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"v"})

    def __init__(
        self,
        func: Any,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        value_transform: Any = None,
        random_seed: int | None = None,
    ) -> None:
        owner = type(self).__name__
        check_space(env.observation_space, who=owner, argument="observation_space")
        self.observation_space = env.observation_space
        self.observation_preprocessor = observation_preprocessor or default_preprocessor(env.observation_space)
        self.value_transform: ValueTransform = value_transform_of(value_transform)
        self._encode_state = encoder(env.observation_space, who=owner, argument="s")
        inputs = state_inputs(env.observation_space, self.observation_preprocessor)
        self._set_up(func, inputs, ScalarOutput(), random_seed)
        inverse = self.value_transform.inverse_func
        self._value = evaluator(
            self._lifted.forward,
            partial(prepare_state, self.observation_preprocessor),
            lambda rng, output: inverse(output),
        )

    def __call__(self, s: Any, carry: Carry | None = None) -> Any:
        """The value in original units, a 0-d NumPy array; ``(value, next carry)`` when a carry is passed."""
        value, next_carry = self._run(self._value, carry, self._encode_state(s))
        return with_carry(host_array(value), next_carry, carry)

    @classmethod
    def example_data(
        cls,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        batch_size: int = 1,
        random_seed: int | None = None,
    ) -> ExampleData:
        """Example inputs of ``func`` and an output of the right shape."""
        return state_examples(
            env,
            ScalarOutput(),
            owner=cls.__name__,
            observation_preprocessor=observation_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )
