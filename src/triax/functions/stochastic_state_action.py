"""Stochastic functions of state and action: calls shared by ``StochasticQ`` and stochastic models."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from triax.functions.approximator import Carry
from triax.functions.decoding import Decoding
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import host_array, host_tree, with_carry
from triax.functions.state_action_function import StateActionFunction


class StochasticStateActionFunction(StateActionFunction):
    """A distribution given state and action. Without action, results are lists with one entry per action."""

    def _set_up_calls(self, decoding: Decoding) -> None:
        prepare_type1, prepare_type2 = self._prepare()
        self.decoding = decoding
        self._calls_type1 = DistributionCalls(self._forward_type1, self._function_type1, prepare_type1, decoding)
        self._calls_type2 = None
        if self._forward_type2 is not None:
            self._calls_type2 = DistributionCalls(
                self._forward_type2, self._function_type2, prepare_type2, decoding, per_action=True
            )

    def __call__(self, s: Any, a: Any = None, carry: Carry | None = None, *, return_logp: bool = False) -> Any:
        """A sample, or ``(sample, log-probability)``; with a carry also the next carry.

        Args:
            s: one observation.
            a: one action; without it (``Discrete`` only, else ``ValueError``) lists over all actions come back.
            carry: the memory of a function that has one.
            return_logp: also return the log-probability of the sample, in nats.
        """
        calls, inputs = self._calls_for(a, self._calls_type1, self._calls_type2, s)
        (sample, logp), next_carry = self._run(calls.sample, carry, *inputs)
        result = self._members(sample, a)
        if return_logp:
            result = (result, rows_of(logp, a, host_array))
        return with_carry(result, next_carry, carry, return_logp)

    def mean(self, s: Any, a: Any = None, carry: Carry | None = None) -> Any:
        """The mean, as ``__call__`` returns samples."""
        return self._evaluate("mean", s, a, carry)

    def mode(self, s: Any, a: Any = None, carry: Carry | None = None) -> Any:
        """The most probable one, as ``__call__`` returns samples."""
        return self._evaluate("mode", s, a, carry)

    def dist_params(self, s: Any, a: Any = None, carry: Carry | None = None) -> Any:
        """The parameters of the distribution without batch axis, NumPy leaves; a list of them without action."""
        calls, inputs = self._calls_for(a, self._calls_type1, self._calls_type2, s)
        result, next_carry = self._run(calls.dist_params, carry, *inputs)
        return with_carry(rows_of(result, a, host_tree), next_carry, carry)

    def _evaluate(self, which: str, s: Any, a: Any, carry: Carry | None) -> Any:
        calls, inputs = self._calls_for(a, self._calls_type1, self._calls_type2, s)
        result, next_carry = self._run(getattr(calls, which), carry, *inputs)
        return with_carry(self._members(result, a), next_carry, carry)

    def _members(self, result: PyTree, a: Any) -> Any:
        return rows_of(result, a, self.decoding.to_member)

    @property
    def sample_func_type1(self) -> Callable:
        """Jitted ``(params, function_state, rng, S, A) -> (X, logP)``: a reparametrised raw variate."""
        return self._calls_type1.sample_func

    @property
    def mean_func_type1(self) -> Callable:
        """Jitted ``(params, function_state, rng, S, A) -> X``, raw."""
        return self._calls_type1.mean_func

    @property
    def mode_func_type1(self) -> Callable:
        """Jitted ``(params, function_state, rng, S, A) -> X``, raw."""
        return self._calls_type1.mode_func

    @property
    def sample_func_type2(self) -> Callable:
        """Jitted ``(params, function_state, rng, S) -> (X, logP)``, leaves ``[batch, actions, ...]``."""
        return self._type2_calls().sample_func

    @property
    def mean_func_type2(self) -> Callable:
        """Jitted ``(params, function_state, rng, S) -> X``, leaves ``[batch, actions, ...]``."""
        return self._type2_calls().mean_func

    @property
    def mode_func_type2(self) -> Callable:
        """Jitted ``(params, function_state, rng, S) -> X``, leaves ``[batch, actions, ...]``."""
        return self._type2_calls().mode_func

    def _type2_calls(self) -> DistributionCalls:
        if self._calls_type2 is None:
            raise self._action_needed()
        return self._calls_type2


def rows_of(result: PyTree, a: Any, convert: Callable[[PyTree], Any]) -> Any:
    """One converted result, or a list with one for each action."""
    if a is not None:
        return convert(result)
    result = jax.tree.map(np.asarray, result)
    count = len(jax.tree.leaves(result)[0])
    return [convert(jax.tree.map(lambda leaf, i=i: leaf[i], result)) for i in range(count)]
