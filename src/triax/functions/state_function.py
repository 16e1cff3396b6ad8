"""Functions of the state alone, and the calls shared by the stochastic ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import PyTree

from triax.functions.approximator import Approximator, Carry
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import Prepare, Preprocessor, host_array, host_tree, with_carry
from triax.functions.inputs import input_encoder, prepare_state, space_of, state_inputs
from triax.functions.outputs import Output
from triax.spaces import default_preprocessor


class StateFunction(Approximator):
    """A function of the state: one input, ``S``."""

    _encode_state: Callable[[Any], PyTree]

    def _set_up_state(
        self,
        func: Any,
        env: Any,
        output: Output,
        *,
        observation_preprocessor: Preprocessor | None,
        random_seed: int | None,
    ) -> None:
        owner = type(self).__name__
        self._set_up_observations(env, observation_preprocessor)
        inputs = state_inputs(self.observation_space, self.observation_preprocessor, who=owner)
        self._set_up(func, inputs, output, random_seed)

    def _set_up_observations(self, env: Any, observation_preprocessor: Preprocessor | None) -> None:
        owner = type(self).__name__
        self.observation_space = space_of(env, "observation_space", who=owner)
        self.observation_preprocessor = observation_preprocessor or default_preprocessor(self.observation_space)
        self._encode_state = input_encoder(self.observation_space, who=owner, argument="s")

    @property
    def _prepare(self) -> Prepare:
        """Preprocessing of ``(s,)`` inside the jitted call."""
        return partial(prepare_state, self.observation_preprocessor)


class StochasticStateFunction(StateFunction):
    """A distribution given the state. Results are host values; a carry that is passed in comes back after them."""

    _calls: DistributionCalls

    def __call__(self, s: Any, carry: Carry | None = None, *, return_logp: bool = False) -> Any:
        """A sample, or ``(sample, log-probability)``; with a carry also the next carry.

        Args:
            s: one observation, a member of the observation space.
            carry: the memory of a function that has one, from ``initial_carry()`` or the previous call.
            return_logp: also return the log-probability of the sample, in nats, a 0-d float array.
        """
        (sample, logp), next_carry = self._run(self._calls.sample, carry, self._encode_state(s))
        sample = self._calls.to_member(sample)
        return with_carry((sample, host_array(logp)) if return_logp else sample, next_carry, carry, return_logp)

    def mean(self, s: Any, carry: Carry | None = None) -> Any:
        """The mean, as ``__call__`` returns samples; for discrete parts the most probable one.

        For a bounded ``Box`` this is the squashed mean of the underlying normal, not the mean of the squashed one.
        """
        return self._evaluate(self._calls.mean, s, carry)

    def mode(self, s: Any, carry: Carry | None = None) -> Any:
        """The most probable (greedy) one, as ``__call__`` returns samples."""
        return self._evaluate(self._calls.mode, s, carry)

    def dist_params(self, s: Any, carry: Carry | None = None) -> Any:
        """The parameters of the distribution without batch axis, NumPy leaves."""
        result, next_carry = self._run(self._calls.dist_params, carry, self._encode_state(s))
        return with_carry(host_tree(result), next_carry, carry)

    def _evaluate(self, call: Callable, s: Any, carry: Carry | None) -> Any:
        result, next_carry = self._run(call, carry, self._encode_state(s))
        return with_carry(self._calls.to_member(result), next_carry, carry)

    @property
    def sample_func(self) -> Callable:
        """Jitted ``(params, function_state, rng, S) -> (X, logP)``: a reparametrised raw variate."""
        return self._calls.sample_func

    @property
    def mean_func(self) -> Callable:
        """Jitted ``(params, function_state, rng, S) -> X``, raw."""
        return self._calls.mean_func

    @property
    def mode_func(self) -> Callable:
        """Jitted ``(params, function_state, rng, S) -> X``, raw."""
        return self._calls.mode_func
