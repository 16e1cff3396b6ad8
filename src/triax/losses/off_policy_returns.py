r"""Returns of one policy from experience of another: V-trace and Retrace.

Conventions are those of :mod:`triax.losses.returns`. ``log_ratios[t]`` is
:math:`\log \pi(a_t | s_t) - \log \mu(a_t | s_t)`, in nats, with :math:`\mu` the policy that acted.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from triax.losses.recursion import as_steps, backward_recursion, bootstrap, goes_on


class VTraceReturns(NamedTuple):
    """Targets for the values, and advantages for the policy gradient, both ``[time, *batch]``."""

    targets: Float[Array, "time *batch"]
    advantages: Float[Array, "time *batch"]


def vtrace(  # noqa: PLR0913 (the formula's)
    log_ratios: ArrayLike,
    rewards: ArrayLike,
    values: ArrayLike,
    next_values: ArrayLike,
    terminated: ArrayLike,
    truncated: ArrayLike,
    *,
    discount: ArrayLike,
    lambda_: ArrayLike = 1.0,
    clip_rho: ArrayLike = 1.0,
    clip_c: ArrayLike = 1.0,
) -> VTraceReturns:
    r"""V-trace targets and the advantages of their policy gradient.

    .. math:: v_t = V_t + \delta_t + \gamma c_t (v_{t+1} - V_{t+1}), \quad
        \delta_t = \min(\bar\rho, \rho_t) (r_t + \gamma V'_t - V_t), \quad
        c_t = \lambda \min(\bar c, \rho_t)

    and advantages :math:`\min(\bar\rho, \rho_t) (r_t + \gamma v_{t+1} - V_t)`, :math:`V'_t` (the value of
    the next observation) in the place of :math:`v_{t+1}` at the end of an episode or of the window. On-policy
    with ``lambda_=1`` the targets are discounted returns.
    Arrays ``[time, *batch]``, flags as bools; ``ValueError`` when shapes differ. ``log_ratios`` is
    :math:`\log \pi - \log \mu`, in nats, :math:`\mu` the policy that acted. More: ``triax.losses.returns``.
    Source: Espeholt et al. 2018, arXiv:1802.01561, eqs. 1 and 4, remark 2.
    """
    steps = as_steps(
        "vtrace",
        log_ratios=log_ratios,
        rewards=rewards,
        values=values,
        next_values=next_values,
        terminated=terminated,
        truncated=truncated,
    )
    rho, continues, after = jnp.exp(steps["log_ratios"]), goes_on(steps), bootstrap(steps, discount)
    clipped = jnp.minimum(rho, clip_rho)
    deltas = clipped * (steps["rewards"] + after - steps["values"])
    traces = continues * jnp.minimum(rho, clip_c) * lambda_ * discount
    targets = steps["values"] + backward_recursion(deltas, traces)
    later = jnp.where(continues > 0, jnp.roll(targets, -1, axis=0) * discount, after)
    return VTraceReturns(targets, clipped * (steps["rewards"] + later - steps["values"]))


def retrace(
    log_ratios: ArrayLike,
    rewards: ArrayLike,
    q_values: ArrayLike,
    next_values: ArrayLike,
    terminated: ArrayLike,
    truncated: ArrayLike,
    *,
    discount: ArrayLike,
    lambda_: ArrayLike = 1.0,
) -> Float[Array, "time *batch"]:
    r"""Retrace(:math:`\lambda`) targets for the values ``q_values`` of the actions taken.

    .. math:: G_t = Q_t + \delta_t + \gamma c_{t+1} (G_{t+1} - Q_{t+1}), \quad
        \delta_t = r_t + \gamma \mathbb E_\pi Q(s'_t, \cdot) - Q_t, \quad
        c_t = \lambda \min(1, \rho_t)

    ``next_values`` holds the expectations under the policy that is learned.
    Arrays ``[time, *batch]``, flags as bools; ``ValueError`` when shapes differ. ``log_ratios`` is
    :math:`\log \pi - \log \mu`, in nats, :math:`\mu` the policy that acted. More: ``triax.losses.returns``.
    Source: Munos et al. 2016, arXiv:1606.02647, eqs. 3 and 4.
    """
    steps = as_steps(
        "retrace",
        log_ratios=log_ratios,
        rewards=rewards,
        q_values=q_values,
        next_values=next_values,
        terminated=terminated,
        truncated=truncated,
    )
    deltas = steps["rewards"] + bootstrap(steps, discount) - steps["q_values"]
    next_ratios = jnp.roll(jnp.exp(steps["log_ratios"]), -1, axis=0)
    traces = goes_on(steps) * jnp.minimum(next_ratios, 1.0) * lambda_ * discount
    return steps["q_values"] + backward_recursion(deltas, traces)
