"""Checks of arguments that are arrays."""

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

DTypeLike = str | type | np.dtype


def check_array(  # noqa: PLR0913 (the contract's)
    arr: Any,
    ndim: int | Collection[int] | None = None,
    ndim_min: int | None = None,
    ndim_max: int | None = None,
    dtype: DTypeLike | Collection[DTypeLike] | None = None,
    shape: tuple[int, ...] | None = None,
    axis_size: int | Collection[int] | None = None,
    axis: int | None = None,
    except_np: bool = False,
) -> None:
    """Raise ``TypeError`` at the first property that ``arr`` does not have, saying expected and found.

    ``arr`` must be a JAX array, or with ``except_np`` a NumPy array. ``ndim``, ``dtype`` and
    ``axis_size`` may be collections of allowed values; ``axis_size`` is that of ``axis``.
    """
    kinds = (jax.Array, np.ndarray) if except_np else (jax.Array,)
    if not isinstance(arr, kinds):
        wanted = "a JAX or NumPy array" if except_np else "a JAX array"
        raise TypeError(f"check_array: expected {wanted}; got {type(arr).__name__}")
    if axis_size is not None and axis is None:
        raise TypeError("check_array: axis_size needs axis, the axis whose size it is")
    _check("ndim", arr.ndim, _allowed(ndim, int))
    if ndim_min is not None and arr.ndim < ndim_min:
        raise TypeError(f"check_array: expected ndim at least {ndim_min}; got {arr.ndim}, shape {arr.shape}")
    if ndim_max is not None and arr.ndim > ndim_max:
        raise TypeError(f"check_array: expected ndim at most {ndim_max}; got {arr.ndim}, shape {arr.shape}")
    _check("dtype", jnp.dtype(arr.dtype), _allowed(dtype, DTypeLike, jnp.dtype))
    _check("shape", arr.shape, None if shape is None else [tuple(shape)])
    if axis is None or axis_size is None:
        return
    if not -arr.ndim <= axis < arr.ndim:
        raise TypeError(f"check_array: expected an array with axis {axis}; got shape {arr.shape}")
    _check(f"size of axis {axis}", arr.shape[axis], _allowed(axis_size, int))


def _allowed(wanted: Any, single: Any, convert: Any = lambda value: value) -> list | None:
    if wanted is None:
        return None
    return [convert(value) for value in ([wanted] if isinstance(wanted, single) else wanted)]


def _check(what: str, found: Any, allowed: list | None) -> None:
    if allowed is not None and found not in allowed:
        expected = str(allowed[0]) if len(allowed) == 1 else "one of " + ", ".join(map(str, allowed))
        raise TypeError(f"check_array: expected {what} {expected}; got {found}")
