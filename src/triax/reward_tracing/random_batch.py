"""A batch of made-up transitions, to try a function or to compile it ahead of time."""

from typing import Any

import numpy as np
from jaxtyping import ArrayLike

from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import make_generator
from triax.core.numbers import positive_int
from triax.reward_tracing.inputs import as_discount
from triax.reward_tracing.transition_batch import TransitionBatch
from triax.spaces.sample import sample_batch


def get_transition_batch(
    env: Any, batch_size: int | np.integer = 1, gamma: ArrayLike = 0.9, random_seed: int | None = None
) -> TransitionBatch:
    """A random batch that fits ``env.observation_space`` and ``env.action_space``; nothing is stepped.

    ``Rn`` is standard normal, clipped to ±5; ``In`` is 0 or ``gamma``; log-propensities are negative; ``W``
    is log-uniform in [0.01, 100]. ``env`` is anything that has the two spaces. ``random_seed=None`` draws
    fresh entropy.

    Raises ``TypeError`` unless ``batch_size`` is an int and ``gamma`` a number, and unless they are positive and in
    [0, 1] ``OutOfRangeError``, which is a ``ValueError`` and, as in coax, a ``TypeError``.
    """
    refuse_unmade_env("get_transition_batch", env)
    batch_size = positive_int("get_transition_batch", "batch_size", batch_size)
    gamma = as_discount("get_transition_batch", "gamma", gamma)
    rng = make_generator(random_seed)
    return TransitionBatch(
        S=sample_batch(env.observation_space, batch_size, rng),
        A=sample_batch(env.action_space, batch_size, rng),
        logP=_log_propensities(rng, batch_size),
        Rn=np.clip(rng.standard_normal(batch_size), -5.0, 5.0),
        In=gamma * rng.integers(2, size=batch_size),
        S_next=sample_batch(env.observation_space, batch_size, rng),
        A_next=sample_batch(env.action_space, batch_size, rng),
        logP_next=_log_propensities(rng, batch_size),
        W=10.0 ** rng.uniform(-2.0, 2.0, size=batch_size),
    )


def _log_propensities(rng: np.random.Generator, batch_size: int) -> np.ndarray:
    return np.log(rng.uniform(1e-3, 1.0, size=batch_size))
