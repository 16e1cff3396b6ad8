"""Which Gymnasium spaces triax works with, and the words for what does not fit one."""

import functools
from typing import Any

import numpy as np
from gymnasium import spaces

from triax.spaces.bounds import BoxBounds, canonical_dtype

SUPPORTED = "Discrete, Box, MultiDiscrete, MultiBinary, Tuple, Dict"

_INT32 = np.iinfo(np.int32)


def check_space(space: Any, *, who: str, argument: str) -> None:
    """Raise a ``TypeError`` unless ``space`` is a Gymnasium space that triax supports.

    Supported are ``Discrete``, ``Box``, ``MultiDiscrete``, ``MultiBinary`` and any nesting of these in
    ``Tuple`` and ``Dict``. Refused are other spaces, spaces without a single component (an empty ``Dict``:
    a batch of its members has no leading axis), discrete values beyond 32 bits, and boxes of integers with
    bounds that JAX's dtype for them cannot hold (beyond 32 bits, unless x64 is on). A box of 64-bit integers
    without bounds (of 1e18 and beyond, see :mod:`triax.spaces.bounds`) passes: its members are used as 32-bit ones,
    and those that do not fit are refused one by one.
    """
    if not isinstance(space, spaces.Space):
        raise TypeError(f"{who}: {argument} must be a gymnasium.spaces.Space; got {type(space).__name__}.")
    _check(space, f"{who}: {argument}")


def describe(space: spaces.Space) -> str:
    """The space in one line of limited length."""
    text = " ".join(repr(space).split())
    return text if len(text) <= 160 else f"{text[:157]}..."


def misfit(place: str, space: spaces.Space, problem: str) -> ValueError:
    """The error for a value at ``place`` (who, argument, path) that is no member of ``space``."""
    return ValueError(f"{place} must be an element of {describe(space)}; {problem}.")


@functools.singledispatch
def _check(space: spaces.Space, place: str) -> None:
    raise TypeError(
        f"{place}: {type(space).__name__} spaces are not supported; got {describe(space)}."
        f" Supported: {SUPPORTED}, nested at will. Try a wrapper that turns it into one of these."
    )


@_check.register
def _(space: spaces.Discrete, place: str) -> None:
    _check_range(space, place, int(space.start), int(space.start) + int(space.n) - 1)


@_check.register
def _(space: spaces.MultiDiscrete, place: str) -> None:
    _check_not_empty(space, place, space.nvec.size)
    last = space.start.astype(object) + space.nvec.astype(object) - 1
    _check_range(space, place, int(space.start.min()), int(np.max(last)))


@_check.register
def _(space: spaces.MultiBinary, place: str) -> None:
    _check_not_empty(space, place, int(np.prod(space.shape)))


@_check.register
def _(space: spaces.Box, place: str) -> None:
    _check_not_empty(space, place, int(np.prod(space.shape)))
    if space.dtype.kind not in "iu":
        return
    held, given = np.iinfo(canonical_dtype(space)), BoxBounds.of(space)
    bounds = [*space.low[given.has_low].tolist(), *space.high[given.has_high].tolist()]
    if bounds and not held.min <= min(bounds) <= max(bounds) <= held.max:
        raise TypeError(
            f"{place}: bounds must fit {held.dtype}, which holds {space.dtype} in JAX; got {min(bounds)} to"
            f" {max(bounds)} in {describe(space)}. Use narrower bounds, or jax.config.update('jax_enable_x64', True)."
        )


@_check.register(spaces.Tuple)
def _(space: Any, place: str) -> None:
    _check_not_empty(space, place, len(space.spaces))
    for index, part in enumerate(space.spaces):
        _check(part, f"{place}[{index}]")


@_check.register(spaces.Dict)
def _(space: Any, place: str) -> None:
    _check_not_empty(space, place, len(space.spaces))
    try:
        sorted(space.spaces)
    except TypeError as error:
        raise TypeError(
            f"{place}: the keys of a Dict space must be comparable with each other; got {list(space.spaces)}."
        ) from error
    for key, part in space.spaces.items():
        _check(part, f"{place}[{key!r}]")


def _check_not_empty(space: spaces.Space, place: str, size: int) -> None:
    if size == 0:
        raise TypeError(f"{place}: a space with nothing in it is not supported; got {describe(space)}.")


def _check_range(space: spaces.Space, place: str, low: int, high: int) -> None:
    if low < _INT32.min or high > _INT32.max:
        raise TypeError(f"{place}: values must fit 32 bits, got {low} to {high} in {describe(space)}.")
