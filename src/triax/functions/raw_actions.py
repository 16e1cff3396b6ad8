"""How a policy's raw action enters a q-function."""

from collections.abc import Callable
from typing import Any

from gymnasium.spaces import Box
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions.inputs import preprocess_alike

Adapter = Callable[[Key, PyTree], PyTree]
"""``(rng, raw action of the policy) -> raw action of the q-function``, traceable and differentiable."""


def action_adapter(q: Any, pi: Any, *, who: str) -> Adapter:
    """The map from raw actions of ``pi`` to those that ``q`` takes.

    The identity where both preprocess actions alike (``q`` made with ``pi.proba_dist.preprocess_variate``, or
    ``Discrete`` actions); otherwise decoding by the policy, then ``q.action_preprocessor``: correct and
    differentiable for a ``Box``.

    Raises:
        TypeError: ``q`` and ``pi`` act in different spaces, or see actions differently in a space that is no ``Box``.
    """
    if q.action_space != pi.action_space:
        raise TypeError(f"{who}: q acts in {q.action_space}, the policy in {pi.action_space}.")
    if preprocess_alike(q.action_space, q.action_preprocessor, pi.proba_dist.preprocess_variate):
        return lambda rng, X: X
    if isinstance(q.action_space, Box):
        return lambda rng, X: q.action_preprocessor(rng, pi.proba_dist.decode(rng, X))
    raise TypeError(
        f"{who}: q.action_preprocessor differs from pi.proba_dist.preprocess_variate."
        " Make q with action_preprocessor=pi.proba_dist.preprocess_variate."
    )
