"""``V``: the value of a state."""

from typing import Any, ClassVar

from triax.functions.approximator import Carry
from triax.functions.evaluate import Preprocessor, evaluator, host_array, with_carry
from triax.functions.example_data import ExampleData, state_examples
from triax.functions.outputs import ScalarOutput
from triax.functions.state_function import StateFunction
from triax.losses.value_transforms import ValueTransform, value_transform_of

OUTPUT = ScalarOutput("state")


class V(StateFunction):
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
        self.value_transform: ValueTransform = value_transform_of(value_transform)
        self._set_up_state(
            func, env, OUTPUT, observation_preprocessor=observation_preprocessor, random_seed=random_seed
        )
        inverse = self.value_transform.inverse_func
        self._value = evaluator(self._lifted.forward, self._prepare, lambda rng, output: inverse(output))

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
            OUTPUT,
            who=f"{cls.__name__}.example_data",
            observation_preprocessor=observation_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )
