r"""Returns and advantages over windows of experience, ``[time, *batch]`` arrays in, the same shape out.

What all functions here share:

- ``terminated[t]`` and ``truncated[t]`` tell how step ``t`` ended its episode, if it did. After a terminated
  step there is nothing (also when both are set); a truncated one is cut short, so the value of its own
  last observation stands for the rest.
- ``next_values[t]`` is the value of the observation that step ``t`` really led to: within an episode that of
  step ``t + 1``, at a boundary that of the final observation, never that of the next episode's first one.
  Where the step terminated it is not used and may be anything.
- The end of the window is treated like a truncation.
- ``discount`` and ``lambda_`` are numbers, or arrays that broadcast to ``[time, *batch]``, traced or not.
- Flags are bools or zeros and ones. Shapes that differ raise ``ValueError``.
- Gradients flow through values; wrap the result in ``jax.lax.stop_gradient`` to use it as a target.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from triax.losses.recursion import as_steps, backward_recursion, bootstrap, goes_on


def td_errors(
    rewards: ArrayLike,
    values: ArrayLike,
    next_values: ArrayLike,
    terminated: ArrayLike,
    *,
    discount: ArrayLike,
) -> Float[Array, "time *batch"]:
    r"""One-step errors :math:`r_t + \gamma (1 - \text{terminated}_t) V(s'_t) - V(s_t)`.

    Arrays ``[time, *batch]``, flags as bools; ``ValueError`` when shapes differ. More: ``triax.losses.returns``.
    Source: Sutton & Barto 2018, eq. 6.5.
    """
    steps = as_steps("td_errors", rewards=rewards, values=values, next_values=next_values, terminated=terminated)
    return steps["rewards"] + bootstrap(steps, discount) - steps["values"]


def gae(
    rewards: ArrayLike,
    values: ArrayLike,
    next_values: ArrayLike,
    terminated: ArrayLike,
    truncated: ArrayLike,
    *,
    discount: ArrayLike,
    lambda_: ArrayLike,
) -> Float[Array, "time *batch"]:
    r"""Generalized advantage estimates, :math:`A_t = \delta_t + \gamma \lambda A_{t+1}` within an episode.

    Arrays ``[time, *batch]``, flags as bools; ``ValueError`` when shapes differ. More: ``triax.losses.returns``.
    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16.
    """
    steps = as_steps("gae", rewards=rewards, terminated=terminated, truncated=truncated)
    deltas = td_errors(rewards, values, next_values, terminated, discount=discount)
    return backward_recursion(deltas, goes_on(steps) * discount * lambda_)


def lambda_returns(
    rewards: ArrayLike,
    next_values: ArrayLike,
    terminated: ArrayLike,
    truncated: ArrayLike,
    *,
    discount: ArrayLike,
    lambda_: ArrayLike,
) -> Float[Array, "time *batch"]:
    r"""TD(:math:`\lambda`) returns, :math:`G_t = r_t + \gamma ((1 - \lambda) V(s'_t) + \lambda G_{t+1})`.

    The last step of an episode or of the window has :math:`r_t + \gamma V(s'_t)`, or :math:`r_t` alone when
    terminated. ``lambda_=0`` gives one-step targets, ``lambda_=1`` discounted returns.
    Arrays ``[time, *batch]``, flags as bools; ``ValueError`` when shapes differ. More: ``triax.losses.returns``.
    Source: Sutton & Barto 2018, eq. 12.18.
    """
    steps = as_steps(
        "lambda_returns", rewards=rewards, next_values=next_values, terminated=terminated, truncated=truncated
    )
    trace = goes_on(steps) * lambda_
    return backward_recursion(steps["rewards"] + (1 - trace) * bootstrap(steps, discount), trace * discount)


def discounted_returns(
    rewards: ArrayLike,
    terminated: ArrayLike,
    truncated: ArrayLike,
    *,
    discount: ArrayLike,
    next_values: ArrayLike | None = None,
) -> Float[Array, "time *batch"]:
    r"""Monte-Carlo returns, :math:`G_t = r_t + \gamma G_{t+1}` to the end of the episode or window.

    Where an episode is cut short or the window ends, ``next_values`` stands for the rest; without it
    nothing does.
    Arrays ``[time, *batch]``, flags as bools; ``ValueError`` when shapes differ. More: ``triax.losses.returns``.
    Source: Sutton & Barto 2018, eq. 3.9.
    """
    after = jnp.zeros(jnp.shape(rewards), jnp.float32) if next_values is None else next_values
    return lambda_returns(rewards, after, terminated, truncated, discount=discount, lambda_=1.0)


def n_step_returns(
    rewards: ArrayLike,
    next_values: ArrayLike,
    terminated: ArrayLike,
    truncated: ArrayLike,
    *,
    n: int,
    discount: ArrayLike,
) -> Float[Array, "time *batch"]:
    r"""Returns of at most ``n`` rewards and the value after them, discounted by the steps really taken.

    .. math:: G^{(n)}_t = \sum_{k<m} \gamma^k r_{t+k} + \gamma^m V(s'_{t+m-1}), \quad m \le n

    where the episode or window goes on for ``m`` steps; no value after a terminated step. Raises
    ``ValueError`` unless ``n`` is a positive int. Costs ``n`` passes over the window.
    Arrays ``[time, *batch]``, flags as bools; ``ValueError`` when shapes differ. More: ``triax.losses.returns``.
    Source: Sutton & Barto 2018, eq. 7.1.
    """
    if isinstance(n, bool) or n < 1:
        raise ValueError(f"n_step_returns: n must be a positive int; got {n}")
    steps = as_steps(
        "n_step_returns", rewards=rewards, next_values=next_values, terminated=terminated, truncated=truncated
    )
    one_step = steps["rewards"] + bootstrap(steps, discount)
    continues = goes_on(steps)

    def lengthen(_: Any, shorter: Array) -> Array:
        # the last row never continues, so what roll brings there does not matter
        longer = steps["rewards"] + discount * jnp.roll(shorter, -1, axis=0)
        return jnp.where(continues > 0, longer, one_step)

    return jax.lax.fori_loop(0, min(n, len(one_step)) - 1, lengthen, one_step)
