"""The jitted calls on a distribution that a function parametrises."""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import PyTree

from triax.core import random
from triax.functions.decoding import Decoding
from triax.functions.evaluate import Prepare, evaluator, flatten_actions


class DistributionCalls:
    """Sample, mean, mode and parameters of the distribution that ``forward(..., *inputs, is_training)`` gives.

    With ``per_action`` the leaves of the parameters are ``[batch, actions, ...]``, and so are those of the results.
    """

    def __init__(
        self,
        forward: Callable,
        function: Callable,
        prepare: Prepare,
        decoding: Decoding,
        *,
        per_action: bool = False,
    ) -> None:
        rows = flatten_actions if per_action else _as_it_is
        dist = decoding.proba_dist
        self.to_member = decoding.to_member
        self.sample = evaluator(forward, prepare, rows(decoding.sample))
        self.mean = evaluator(forward, prepare, rows(decoding.mean))
        self.mode = evaluator(forward, prepare, rows(decoding.mode))
        self.dist_params = evaluator(forward, prepare, lambda rng, output: output)
        draw = rows(lambda rng, dist_params: dist.sample_with_log_proba(dist_params, rng))

        def sample_func(params: Any, function_state: Any, rng: Any, *inputs: Any) -> tuple:
            rng, rng_sample = random.split(rng)
            return draw(rng_sample, function(params, function_state, rng, *inputs, False)[0])

        def mean_func(params: Any, function_state: Any, rng: Any, *inputs: Any) -> PyTree:
            return rows(dist.mean)(function(params, function_state, rng, *inputs, False)[0])

        def mode_func(params: Any, function_state: Any, rng: Any, *inputs: Any) -> PyTree:
            return rows(dist.mode)(function(params, function_state, rng, *inputs, False)[0])

        self.sample_func, self.mean_func, self.mode_func = map(jax.jit, (sample_func, mean_func, mode_func))


def _as_it_is(fn: Callable) -> Callable:
    return fn
