"""Threefry as straight-line code: the bits of JAX's own keys, without the loops that it compiles to on a CPU.

JAX rolls the rounds of the cipher into a loop there. Inside a compiled program of small operations each such loop costs
as much as a layer, and takes XLA longer to compile than the rounds written out, which fuse with what is around them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array, UInt

Words = tuple[UInt[Array, "..."], UInt[Array, "..."]]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_OF_WIDTH = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}


def threefry(key: UInt[Array, "2"], counters: Words) -> Words:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3")."""
    keys = key[0], key[1], key[0] ^ key[1] ^ _PARITY
    x, y = counters[0] + keys[0], counters[1] + keys[1]
    for block in range(5):
        for rotation in _ROTATIONS[block % 2]:
            x = x + y
            y = x ^ (y << np.uint32(rotation) | y >> np.uint32(32 - rotation))
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x, y


def _counters(shape: tuple[int, ...]) -> Words:
    """Numbers from 0 on, in 64 bits."""
    size = int(np.prod(shape, dtype=np.int64))
    if size >= 2**32:
        raise ValueError(f"random: fewer than 2**32 numbers can be drawn in one call; got the shape {shape}.")
    low = jax.lax.iota(jnp.uint32, size).reshape(shape)
    return jnp.zeros_like(low), low


# In one call of an eager program; inside another one they are inlined.
_inlined = partial(jax.jit, inline=True)


@partial(_inlined, static_argnums=(1, 2))
def _random_bits(key: UInt[Array, "2"], width: int, shape: tuple[int, ...]) -> UInt[Array, "..."]:
    high, low = threefry(key, _counters(shape))
    if width == 64:
        return high.astype(jnp.uint64) << np.uint64(32) | low
    return (high ^ low).astype(_OF_WIDTH[width])


@partial(_inlined, static_argnums=1)
def _split(key: UInt[Array, "2"], shape: tuple[int, ...]) -> UInt[Array, "... 2"]:
    return jnp.stack(threefry(key, _counters(shape)), axis=-1)


@_inlined
def _seed(seed: Array) -> UInt[Array, "2"]:
    high = seed >> 32 if seed.dtype.itemsize > 4 else jnp.zeros((), jnp.uint32)
    return jnp.stack([high.astype(jnp.uint32), seed.astype(jnp.uint32)])


@_inlined
def _fold_in(key: UInt[Array, "2"], data: Array) -> UInt[Array, "2"]:
    return jnp.stack(threefry(key, (jnp.zeros((), jnp.uint32), data.astype(jnp.uint32))))


UNROLLED = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="triax_threefry2x32",
    tag="triax_fry",
)
"""An implementation of keys: see :mod:`triax.core.random`."""
