"""Gymnasium spaces for observations of which only the shapes are known."""

import functools
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np


@functools.singledispatch
def space_of_shapes(shapes: Any) -> gymnasium.Space:
    """The space of all pytrees like ``shapes``: boxes without bounds in ``Dict`` and ``Tuple`` spaces.

    Leaves are arrays or shape structs; integers are bounded by their dtype, bools by 0 and 1. Raises
    ``TypeError`` for containers other than dicts, tuples and lists.
    """
    if not (hasattr(shapes, "shape") and hasattr(shapes, "dtype")):
        raise TypeError(
            f"observation_space: expected dicts and tuples of arrays; got {type(shapes).__name__}. "
            "Try triax.envs.adapt(env, observation_space=...)."
        )
    dtype = np.dtype(shapes.dtype)
    return gymnasium.spaces.Box(*_bounds(dtype), shapes.shape, dtype.type)


@space_of_shapes.register
def _(shapes: dict) -> gymnasium.Space:
    return gymnasium.spaces.Dict({name: space_of_shapes(part) for name, part in shapes.items()})


@space_of_shapes.register(tuple)
@space_of_shapes.register(list)
def _(shapes: Any) -> gymnasium.Space:
    return gymnasium.spaces.Tuple([space_of_shapes(part) for part in shapes])


def _bounds(dtype: np.dtype) -> tuple[Any, Any]:
    if jnp.issubdtype(dtype, jnp.floating):
        return -np.inf, np.inf
    if dtype == np.bool_:
        return 0, 1
    limits = jnp.iinfo(dtype)
    return limits.min, limits.max
