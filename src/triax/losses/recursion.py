"""The one recursion behind all returns: ``y[t] = a[t] + b[t] * y[t + 1]``, backwards in time."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


def backward_recursion(
    increments: Float[Array, "time *batch"], factors: Float[Array, "time *batch"]
) -> Float[Array, "time *batch"]:
    """Solve ``y[t] = increments[t] + factors[t] * y[t + 1]`` with ``y[time] = 0``.

    On a CPU a plain scan beats unrolled and associative ones for every shape tried, and compiles fastest.
    """

    def step(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        value = now[0] + now[1] * later
        return value, value

    return jax.lax.scan(step, jnp.zeros_like(increments[0]), (increments, factors), reverse=True)[1]


def as_steps(who: str, **arrays: Any) -> dict[str, Array]:
    """The arrays of one shape ``[time, *batch]`` or a ``ValueError``; flags as bools, the rest as floats."""
    steps = {name: jnp.asarray(array) for name, array in arrays.items()}
    shape = steps["rewards"].shape
    if 0 in (*shape, len(shape)) or any(array.shape != shape for array in steps.values()):
        listed = ", ".join(f"{name} {array.shape}" for name, array in steps.items())
        raise ValueError(f"{who}: all arrays must have one shape [time, *batch], not empty; got {listed}")
    flags = {name: steps.pop(name).astype(bool) for name in ("terminated", "truncated") if name in steps}
    dtype = jnp.result_type(jnp.float32, *steps.values())
    return {name: array.astype(dtype) for name, array in steps.items()} | flags


def bootstrap(steps: dict[str, Array], discount: ArrayLike) -> Float[Array, "time *batch"]:
    """The discounted value after each step, zero where the step terminated."""
    return jnp.where(steps["terminated"], 0, steps["next_values"]) * discount


def goes_on(steps: dict[str, Array]) -> Float[Array, "time *batch"]:
    """One where step ``t + 1`` belongs to the same episode and window, else zero."""
    inside = ~(steps["terminated"] | steps["truncated"])
    return inside.at[-1].set(False).astype(steps["rewards"].dtype)
