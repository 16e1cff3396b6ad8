"""Noise in networks: streams of a module's own, and one key an environment in the carry."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array

from triax.core import random
from triax.core.key_types import is_typed_key
from triax.core.keys import Key, as_typed_key, fold_name
from triax.networks.arguments import check_rngs


def own_stream(who: str, rng: nnx.Rngs | nnx.RngStream, name: str) -> nnx.RngStream:
    """A stream that no other module shares, seeded by one draw of ``rng``.

    Of an ``nnx.Rngs`` it is the stream ``name`` that is drawn from, or the default one where there is none
    such.
    """
    check_rngs(who, "rng", rng, nnx.RngStream)
    source = rng[name] if isinstance(rng, nnx.Rngs) else rng
    return nnx.RngStream(source(), tag=name)


def reseed(module: nnx.Module, rng: Key) -> None:
    """Give each RNG stream inside ``module`` its own key, derived from ``rng`` and its place; counts start at
    zero.

    For evaluation that leaves no trace: reseed and use a copy (``nnx.merge(..., copy=True)``) of the network.
    """
    streams = nnx.state(module, nnx.RngState)

    def seed(path: tuple, leaf: Any) -> Any:
        if not is_typed_key(leaf):
            return jnp.zeros_like(leaf)
        key = fold_name(as_typed_key(rng), jax.tree_util.keystr(path))
        return random.split(key, leaf.shape) if leaf.shape else key

    nnx.update(module, jax.tree_util.tree_map_with_path(seed, streams))


def split_keys(keys: Array) -> tuple[Array, Array]:
    """One step of a chain of keys ``[batch]``: the keys of the next step, and those to use in this one."""
    both = jax.vmap(random.split)(keys)
    return both[:, 0], both[:, 1]


def key_chain(keys: Array, time: int) -> tuple[Array, Array]:
    """``time`` steps of the chain: the keys after it, and those to use, ``[time, batch]``."""
    return jax.lax.scan(lambda k, _: split_keys(k), keys, length=time)
