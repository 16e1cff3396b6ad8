"""How a transition model's raw observation enters another function."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import PyTree

from triax.core.keys import Key
from triax.core.user_warnings import warn_user
from triax.functions.evaluate import Preprocessor
from triax.functions.inputs import preprocess_alike

Adapter = Callable[[Key, PyTree], PyTree]
"""``(rng, raw observation of the model) -> raw observation of the other function``, traceable."""


class RawObservation(NamedTuple):
    """A raw form of observations: how they get into it, and the way back, ``None`` if that is not known."""

    preprocess: Preprocessor
    decode: Callable[[Key, PyTree], PyTree] | None


def observation_adapter(f: Any, argument: str, raw: RawObservation, *, who: str) -> Adapter:
    """The map from observations in the form ``raw`` to those that ``f`` takes.

    The identity where both are alike; otherwise decoding, then ``f.observation_preprocessor``. A form that cannot be
    decoded is passed on as it is, with a warning.
    """
    if preprocess_alike(f.observation_space, raw.preprocess, f.observation_preprocessor):
        return lambda rng, X: X
    decode = raw.decode
    if decode is not None:
        return lambda rng, X: f.observation_preprocessor(rng, decode(rng, X))
    warn_user(
        f"{who}: p has preprocessor and postprocessor of its own, and the observation_preprocessor of {argument}"
        f" differs, so {argument} sees other inputs than it was made for; pass"
        f" observation_preprocessor=p.observation_preprocessor to {argument}."
    )
    return lambda rng, X: X
