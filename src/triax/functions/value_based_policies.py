"""Policies derived from a q-function: epsilon-greedy and Boltzmann."""

import copy
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import Array, Float, PyTree

from triax.core.numbers import check_number
from triax.functions.approximator import Carry
from triax.functions.decoding import SpaceDecoding
from triax.functions.delegation import held_by
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import without_carry
from triax.functions.inputs import input_encoder
from triax.functions.interpolation import Number
from triax.functions.lift import Unrolled
from triax.functions.predicates import is_qfunction
from triax.functions.sequences import Sequence, map_rows
from triax.functions.state_function import StochasticStateFunction
from triax.proba_dists import ProbaDist

P = TypeVar("P", bound="ValueBasedPolicy")


class ValueBasedPolicy(StochasticStateFunction):
    """A policy without weights of its own: those of ``q`` and one number, which may change at any time.

    ``params`` is ``{<name of the number>: number, "q": q.params}``; assigning it writes through to ``q``. The function
    state and the key are those of ``q``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"policy"})

    _number_name: ClassVar[str]
    _number: float
    _leaf: np.float32

    def __init__(self, q: Any, number: Any) -> None:
        owner = type(self).__name__
        if not is_qfunction(q):
            raise TypeError(f"{owner}: q must be a q-function (Q, StochasticQ); got {type(q).__name__}.")
        if not isinstance(q.action_space, Discrete):
            raise TypeError(f"{owner}: q must have a Discrete action space; got {q.action_space}.")
        self._set_number(number)
        self.q = q
        self.observation_space, self.action_space = q.observation_space, q.action_space
        self.observation_preprocessor = q.observation_preprocessor
        self._encode_state = input_encoder(q.observation_space, who=owner, argument="s")
        self.proba_dist = ProbaDist(q.action_space)
        self._has_memory, self._carry_structure = q.has_memory, q._carry_structure
        forward = partial(_forward, self._logits, self._number_name, q.forward_values)
        self._function = without_carry(forward, ("S",), owner, self._has_memory)
        self._calls = DistributionCalls(forward, self._function, self._prepare, SpaceDecoding(self.proba_dist))

    @staticmethod
    @abstractmethod
    def _logits(values: Float[Array, "batch n"], number: Any) -> Float[Array, "batch n"]: ...

    @staticmethod
    @abstractmethod
    def _checked(number: Any) -> float:
        """The number as a float; a ``ValueError`` if it is out of range, a ``TypeError`` if it is none."""

    def _set_number(self, number: Any) -> None:
        self._number = self._checked(number)
        self._leaf = np.float32(self._number)

    # ------------------------------------------------------------------ weights

    _function_state = held_by("q", "_function_state")
    _exposed = held_by("q", "_exposed")
    _keys = held_by("q", "_keys")
    _random_seed = held_by("q", "_random_seed")

    @property
    def _params(self) -> dict:
        return {self._number_name: self._leaf, "q": self.q._params}

    @property
    def params(self) -> dict:
        """The number and the weights of ``q``; assigning checks both and writes through."""
        return self._expose()[0]

    @params.setter
    def params(self, params: Any) -> None:
        expected = self._params
        if isinstance(params, dict) and self._number_name in params:  # a Python number will do
            expected = {**expected, self._number_name: params[self._number_name]}
        self._check_same("params", expected, params)
        number = self._checked(params[self._number_name])
        self.q.params = params["q"]
        self._set_number(number)

    def export_weights(self, trained: Any) -> PyTree:
        """The number, and what ``q`` exports."""
        return self._leaf, self.q.export_weights(trained)

    def resolve_weights(self, exported: PyTree, trained: Any, weights: tuple[Any, Any]) -> tuple[Any, Any]:
        """The number beside the weights of ``q``."""
        number, q = exported
        params, function_state = self.q.resolve_weights(q, trained, weights)
        return {self._number_name: number, "q": params}, function_state

    def sequence(self, *, with_action: bool = False) -> Sequence:
        """Pure: the logits along a sequence."""
        values = self.q.sequence()

        def logits(params: dict, function_state: Any, rng: Any, carry: Carry, resets: Any, *args: Any) -> Unrolled:
            number = params[self._number_name]
            to_logits = map_rows(values, lambda output: {"logits": self._logits(self.q.values_of(output), number)})
            return to_logits(params["q"], function_state, rng, carry, resets, *args)

        return logits

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """The memory of ``q`` at the start of an episode."""
        return self.q.initial_carry(batch_size)

    # ------------------------------------------------------------------ copies

    def copy(self: P, deep: bool = False) -> P:
        """A policy like this one on a copy of ``q``; the compiled functions are shared."""
        return self._on(self.q.copy(deep))

    def __deepcopy__(self: P, memo: dict) -> P:
        return self._on(copy.deepcopy(self.q, memo))

    def _on(self: P, q: Any) -> P:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self) | {"q": q})
        return twin

    def soft_update(self, other: Any, tau: Number) -> None:
        """Move the weights of ``q``, and the number, towards those of ``other``."""
        self.check_soft_update(other, tau)
        self.q.soft_update(other.q, tau)
        self._set_number((1 - tau) * self._number + tau * other._number)

    def _facts(self) -> list[str]:
        return [f"{self._number_name}={self._number:g}"]

    def _parts(self) -> dict[str, Any]:
        return {"q": self.q}


def _forward(
    logits: Callable,
    number: str,
    forward_values: Callable,
    params: Any,
    state: Any,
    rng: Any,
    carry: Any,
    *inputs: Any,
) -> tuple[PyTree, Carry, Any]:
    values, carry, state = forward_values(params["q"], state, rng, carry, *inputs)
    return {"logits": logits(values, params[number])}, carry, state


class EpsilonGreedy(ValueBasedPolicy):
    """A random action with probability ``epsilon``, else a greedy one; tied greedy actions share their weight.

    Args:
        q: a q-function on ``Discrete`` actions; a ``StochasticQ`` enters through its mean.
        epsilon: a plain attribute in [0, 1] that may change at any time without recompilation.

    Raises:
        TypeError: ``q`` is no q-function, or its actions are not ``Discrete``.
        ValueError: ``epsilon`` is outside [0, 1], here or when it is assigned.
    """

    _number_name = "epsilon"

    def __init__(self, q: Any, epsilon: Number = 0.1) -> None:
        super().__init__(q, epsilon)

    @property
    def epsilon(self) -> float:
        """The probability of a random action."""
        return self._number

    @epsilon.setter
    def epsilon(self, epsilon: Any) -> None:
        self._set_number(epsilon)

    @staticmethod
    def _checked(number: Any) -> float:
        return check_number("EpsilonGreedy", "epsilon", number, low=0, high=1)

    @staticmethod
    def _logits(values: Float[Array, "batch n"], number: Any) -> Float[Array, "batch n"]:
        greedy = values >= jnp.max(values, axis=-1, keepdims=True)
        greedy = greedy / jnp.sum(greedy, axis=-1, keepdims=True)
        probabilities = (1 - number) * greedy + number / values.shape[-1]
        return jax.nn.log_softmax(jnp.log(probabilities + 1e-15), axis=-1)


class BoltzmannPolicy(ValueBasedPolicy):
    """Actions with probabilities ``softmax(q(s, .) / temperature)``, on the network's own (transformed) values.

    Args:
        q: a q-function on ``Discrete`` actions; a ``StochasticQ`` enters through its mean.
        temperature: a plain positive attribute that may change at any time without recompilation.

    Raises:
        TypeError: ``q`` is no q-function, or its actions are not ``Discrete``.
        ValueError: ``temperature`` is not positive and finite, here or when it is assigned.
    """

    _number_name = "temperature"

    def __init__(self, q: Any, temperature: Number = 0.02) -> None:
        super().__init__(q, temperature)

    @property
    def temperature(self) -> float:
        """What the values are divided by."""
        return self._number

    @temperature.setter
    def temperature(self, temperature: Any) -> None:
        self._set_number(temperature)

    @staticmethod
    def _checked(number: Any) -> float:
        return check_number("BoltzmannPolicy", "temperature", number, positive=True)

    @staticmethod
    def _logits(values: Float[Array, "batch n"], number: Any) -> Float[Array, "batch n"]:
        return values / number
