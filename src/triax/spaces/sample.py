"""Random members of a space, from a generator of one's own."""

import functools
from typing import Any

import numpy as np
from gymnasium import spaces

from triax.core.keys import make_generator
from triax.spaces.bounds import BoxBounds
from triax.spaces.checks import check_space, describe
from triax.spaces.encode_batch import batch_encoder

Seed = int | np.integer | np.random.RandomState | np.random.Generator | None


def safe_sample(space: spaces.Space, seed: Seed = None) -> Any:
    """A random member of ``space`` with its dtype; the space's and NumPy's own generators stay untouched.

    Components of a ``Box`` are uniform between two bounds, exponential (scale 1) from a single one, standard
    normal without any; bounds of 1e18 and more count as none. Integers are uniform between two bounds and
    spread ten times as wide otherwise. ``seed`` is a number, a generator, which is advanced, or ``None`` for
    fresh entropy.

    Raises ``TypeError`` for a space that is not supported.
    """
    check_space(space, who="safe_sample", argument="space")
    return _draw(space, _generator(seed), ())


def sample_batch(space: spaces.Space, batch_size: int, seed: Seed = None) -> Any:
    """Clean arrays, as of :func:`triax.spaces.encoder`, of ``batch_size`` draws of :func:`safe_sample`."""
    encode = batch_encoder(space, who="sample_batch", argument="space")
    return encode(_draw(space, _generator(seed), (batch_size,)))


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(2**32, size=4, dtype=np.uint32).tolist())
    return seed if isinstance(seed, np.random.Generator) else make_generator(seed, "seed")


@functools.singledispatch
def _draw(space: spaces.Space, generator: np.random.Generator, batch: tuple[int, ...]) -> Any:
    """A member, or a batch of them when ``batch`` holds its size."""
    raise NotImplementedError(f"no samples of {describe(space)}")


@_draw.register
def _(space: spaces.Discrete, generator: np.random.Generator, batch: tuple[int, ...]) -> Any:
    return space.dtype.type(int(space.start) + generator.integers(int(space.n), size=batch or None))


@_draw.register
def _(space: spaces.MultiDiscrete, generator: np.random.Generator, batch: tuple[int, ...]) -> Any:
    offset = generator.integers(space.nvec.astype(np.int64), size=batch + space.shape)
    return np.asarray(space.start.astype(np.int64) + offset, space.dtype)


@_draw.register
def _(space: spaces.MultiBinary, generator: np.random.Generator, batch: tuple[int, ...]) -> Any:
    return generator.integers(2, size=batch + space.shape, dtype=np.int8)


@_draw.register
def _(space: spaces.Box, generator: np.random.Generator, batch: tuple[int, ...]) -> Any:
    bounds = BoxBounds.of(space)
    low = np.where(bounds.has_low, space.low.astype(np.float64), 0.0)
    high = np.where(bounds.has_high, space.high.astype(np.float64), 0.0)
    shape = batch + space.shape
    is_float = space.dtype.kind == "f"
    spread = 1.0 if is_float else 10.0
    # Each integer between two bounds has an equal share of [low, high + 1).
    bounded = low + (high - low + (0.0 if is_float else 1.0)) * generator.random(shape)
    waiting = spread * generator.exponential(size=shape)
    one_sided = np.where(bounds.has_low, low + waiting, high - waiting)
    unbounded = spread * generator.normal(size=shape)
    has_both, has_none = bounds.has_low & bounds.has_high, ~(bounds.has_low | bounds.has_high)
    return _into(space, np.where(has_both, bounded, np.where(has_none, unbounded, one_sided)))


def _into(space: spaces.Box, real: np.ndarray) -> np.ndarray:
    member = (real if space.dtype.kind == "f" else np.floor(real)).astype(space.dtype)
    return np.asarray(np.minimum(np.maximum(member, space.low), space.high))


@_draw.register(spaces.Tuple)
def _(space: Any, generator: np.random.Generator, batch: tuple[int, ...]) -> Any:
    return tuple(_draw(part, generator, batch) for part in space.spaces)


@_draw.register(spaces.Dict)
def _(space: Any, generator: np.random.Generator, batch: tuple[int, ...]) -> Any:
    return {key: _draw(part, generator, batch) for key, part in space.spaces.items()}
