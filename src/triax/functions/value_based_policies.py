"""Policies derived from a q-function: epsilon-greedy and Boltzmann."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import Array, Float, PyTree

from triax.core.keys import Key
from triax.functions.approximator import Carry, without_carry
from triax.functions.decoding import SpaceDecoding
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.inputs import prepare_state
from triax.functions.predicates import is_qfunction
from triax.functions.state_function import StochasticStateFunction
from triax.proba_dists import ProbaDist


class ValueBasedPolicy(StochasticStateFunction):
    """A policy without weights of its own: those of ``q`` and one number, which may change at any time.

    ``params`` is ``{<name of the number>: number, "q": q.params}``; assigning it writes through to ``q``. The function
    state and the key are those of ``q``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"policy"})

    _number: str

    def __init__(self, q: Any, number: float) -> None:
        owner = type(self).__name__
        if not is_qfunction(q):
            raise TypeError(f"{owner}: q must be a q-function (Q, StochasticQ); got {type(q).__name__}.")
        if not isinstance(q.action_space, Discrete):
            raise TypeError(f"{owner}: q must have a Discrete action space; got {q.action_space}.")
        self.q = q
        setattr(self, self._number, number)
        self.observation_space, self.action_space = q.observation_space, q.action_space
        self.observation_preprocessor = q.observation_preprocessor
        self.proba_dist = ProbaDist(q.action_space)
        self._encode_state = q._encode_state
        self._has_memory = q.has_memory
        forward = partial(_forward, self._logits, self._number, q.forward_values)
        self._function = without_carry(forward, 1, owner, self._has_memory)
        self._calls = DistributionCalls(
            forward,
            self._function,
            partial(prepare_state, self.observation_preprocessor),
            SpaceDecoding(self.proba_dist),
        )

    @staticmethod
    @abstractmethod
    def _logits(values: Float[Array, "batch n"], number: Any) -> Float[Array, "batch n"]: ...

    @property
    def _params(self) -> dict:
        return {self._number: np.float32(getattr(self, self._number)), "q": self.q._params}

    @_params.setter
    def _params(self, params: dict) -> None:
        setattr(self, self._number, float(params[self._number]))
        self.q._params = params["q"]

    @property
    def _function_state(self) -> Any:
        return self.q._function_state

    @_function_state.setter
    def _function_state(self, function_state: Any) -> None:
        self.q._function_state = function_state

    @property
    def _exposed(self) -> bool:
        return self.q._exposed

    @_exposed.setter
    def _exposed(self, exposed: bool) -> None:
        self.q._exposed = exposed

    @property
    def _key(self) -> Key:
        return self.q._key

    @_key.setter
    def _key(self, key: Key) -> None:
        self.q._key = key

    def export_weights(self, trained: Any) -> PyTree:
        """The number, and what ``q`` exports."""
        return np.float32(getattr(self, self._number)), self.q.export_weights(trained)

    def resolve_weights(self, exported: PyTree, trained: Any, weights: tuple[Any, Any]) -> tuple[Any, Any]:
        """The number beside the weights of ``q``."""
        number, q = exported
        params, function_state = self.q.resolve_weights(q, trained, weights)
        return {self._number: number, "q": params}, function_state

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """The memory of ``q`` at the start of an episode."""
        return self.q.initial_carry(batch_size)

    def copy(self, deep: bool = False) -> "ValueBasedPolicy":
        """A policy like this one on a copy of ``q``."""
        return type(self)(self.q.copy(deep), getattr(self, self._number))


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
    """

    _number = "epsilon"
    epsilon: float

    def __init__(self, q: Any, epsilon: float = 0.1) -> None:
        super().__init__(q, epsilon)

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
    """

    _number = "temperature"
    temperature: float

    def __init__(self, q: Any, temperature: float = 0.02) -> None:
        super().__init__(q, temperature)

    @staticmethod
    def _logits(values: Float[Array, "batch n"], number: Any) -> Float[Array, "batch n"]:
        return jax.nn.log_softmax(values / number, axis=-1)
