"""Generalized advantages for rollouts in which each step's value is also the next value of the step before."""

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from triax import losses


def gae(
    rewards: ArrayLike,
    values_excl_last: ArrayLike,
    last_value: ArrayLike,
    done: ArrayLike,
    truncation: ArrayLike,
    lambda_: ArrayLike,
    gamma: ArrayLike,
    *,
    final_values: ArrayLike | None = None,
) -> Float[Array, "time *batch"]:
    r"""Advantages ``[time, *batch]``, constants for gradients: :func:`triax.losses.gae` with values in another layout.

    Args:
        rewards: ``[time, *batch]``.
        values_excl_last: ``[time, *batch]``, of the observations that were acted on.
        last_value: ``[*batch]``, of the observation after the window.
        done: ``[time, *batch]``, where an episode ended, for whichever reason.
        truncation: ``[time, *batch]``, where a time limit cut it; ``done`` without it is a termination.
        lambda_: decay, in [0, 1].
        gamma: discount.
        final_values: ``[time, *batch]``, the value of what each step led to; read where a step is truncated. The
            values of the rollout do not tell it: the next one there is that of another episode.

    Raises ``ValueError`` without ``final_values`` unless it is known that no step is truncated.
    """
    done, truncation = jnp.asarray(done).astype(bool), jnp.asarray(truncation).astype(bool)
    values = jnp.asarray(values_excl_last)
    next_values = jnp.concatenate([values[1:], jnp.asarray(last_value)[None]])
    if final_values is not None:
        next_values = jnp.where(truncation, jnp.asarray(final_values), next_values)
    elif isinstance(truncation, Tracer) or bool(jnp.any(truncation)):
        raise ValueError(
            "gae: a truncated step bootstraps from the value of its own final observation, which is not among the "
            "values of the rollout. Try gae(..., final_values=values_of_next_observations)."
        )
    terminated = done & ~truncation
    advantages = losses.gae(rewards, values, next_values, terminated, truncation, discount=gamma, lambda_=lambda_)
    return jax.lax.stop_gradient(advantages)
