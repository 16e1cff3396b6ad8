"""Any value function as a plain number in original units."""

from collections.abc import Callable
from typing import Any

from triax.core.keys import Key
from triax.functions.predicates import is_stochastic, is_vfunction


def value_of(f: Any) -> Callable:
    """Pure ``(params, function_state, rng, *inputs, is_training) -> (value [batch], function_state)``.

    In original units; a distribution enters through its mean. A q-function or reward is taken in its type-1 form.
    """
    forward = f._lifted.forward if is_vfunction(f) else f._forward_type1
    finish = f.decoding.mean if is_stochastic(f) else lambda rng, output: f.value_transform.inverse_func(output)

    def value(params: Any, state: Any, rng: Key, *args: Any) -> tuple:
        output, _, state = forward(params, state, rng, (), *args)
        return finish(rng, output), state

    return value
