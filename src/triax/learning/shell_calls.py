"""What the shell around a learner jits: pure functions that take what it holds and give what it stores."""

from collections.abc import Callable
from typing import Any

import jax

from triax.core import random
from triax.core.keys import Draw
from triax.functions.interpolation import interpolate
from triax.learning.batches import EncodedBatch
from triax.learning.learner import Step


def unpacked(function: Callable, draw: Draw, *args: Any) -> Any:
    """``function(*weights, rng, context, batch)`` from what a shell hands to a jitted call."""
    *weights, context, batch = args
    batch = jax.tree.map(lambda x: x.decode() if _is_encoded(x) else x, batch, is_leaf=_is_encoded)
    return function(*weights, random.fold_in(*draw), context, batch)


def stepped(step: Callable[..., Step], *args: Any) -> tuple[Step, Any]:
    """A step, and the weights of a target after it: ``following`` are ``(its weights, tau)``, or ``None``."""
    *held, following = args
    done = unpacked(step, *held)
    if following is None:
        return done, None
    weights, tau = following
    return done, interpolate(weights, (done.params, done.function_state), tau)


def applied(apply: Callable, *args: Any) -> tuple[Step, None]:
    """A step with gradients from elsewhere, as ``stepped`` gives one."""
    params, function_state, optimizer_state, finite = apply(*args)
    return Step(params, function_state, optimizer_state, {}, None, finite), None


def _is_encoded(x: Any) -> bool:
    return isinstance(x, EncodedBatch)
