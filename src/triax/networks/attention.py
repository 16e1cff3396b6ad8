"""Attention over the last steps of the episode."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from triax.core.numbers import check_count
from triax.networks.arguments import check_layer
from triax.networks.history import last_start
from triax.networks.inputs import check_carry, check_features, check_old_carry
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, StatefulModuleOutput
from triax.networks.unrolling import check_sequence, fold, select, unfold


class SlidingWindowAttention(StatefulModule):
    """Multi-head attention to the last ``window`` steps of the episode, the present one included.

    ``[batch, in_features] -> [batch, out_features]`` (as many as ``in_features`` by default). Each head has a
    learned bias for the age of a step, so order matters. Residual connections and norms are the network's
    business: see :class:`Container`.

    The carry is ``{"keys", "values": [batch, window - 1, num_heads, qkv_features / num_heads], "filled":
    int32 [batch]}``; cached keys and values are those of the parameters that acted. Raises ``ValueError`` for
    ``window < 1`` or heads that do not divide ``qkv_features``. Source: Vaswani et al. 2017,
    arXiv:1706.03762; the window of Beltagy et al. 2020, arXiv:2004.05150; biases as in Raffel et al. 2020,
    arXiv:1910.10683.
    """

    def __init__(
        self,
        in_features: int,
        rngs: nnx.Rngs,
        *,
        window: int,
        num_heads: int = 4,
        qkv_features: int | None = None,
        out_features: int | None = None,
    ):
        in_features, width, self.out_features = check_layer(
            "SlidingWindowAttention",
            rngs,
            in_features=in_features,
            qkv_features=in_features if qkv_features is None else qkv_features,
            out_features=in_features if out_features is None else out_features,
        )
        window = check_count("SlidingWindowAttention", "window", window)
        num_heads = check_count("SlidingWindowAttention", "num_heads", num_heads)
        if width % num_heads:
            raise ValueError(
                f"SlidingWindowAttention: num_heads={num_heads} must divide qkv_features={width}; pass qkv_features."
            )
        self.in_features, self.window, self.num_heads, self.head_features = (
            in_features,
            window,
            num_heads,
            width // num_heads,
        )
        self.qkv = nnx.Linear(in_features, 3 * width, rngs=rngs)
        self.out = nnx.Linear(width, self.out_features, rngs=rngs)
        self.age_bias = nnx.Param(jnp.zeros((num_heads, window)))

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        self._check(state, x)
        query, key, value = self._project(jnp.asarray(x))
        keys = jnp.concatenate([state["keys"], key[:, None]], axis=1)
        values = jnp.concatenate([state["values"], value[:, None]], axis=1)
        ages = jnp.arange(self.window - 1, -1, -1)
        visible = ages <= state["filled"][:, None]
        logits = jnp.einsum("bhd,bshd->bhs", query, keys) / math.sqrt(self.head_features)
        logits = logits + self.age_bias[...][:, ages]
        weights = jax.nn.softmax(logits, where=visible[:, None], axis=-1)
        mixed = jnp.einsum("bhs,bshd->bhd", weights, values)
        filled = jnp.minimum(state["filled"] + 1, self.window - 1)
        carry = {"keys": keys[:, 1:], "values": values[:, 1:], "filled": filled}
        return plain(self.out(mixed.reshape(mixed.shape[0], -1)), carry)

    def initialize_state(self, batch_size: int) -> ModuleState:
        """Nothing to attend to."""
        cache = jnp.zeros((batch_size, self.window - 1, self.num_heads, self.head_features))
        return {"keys": cache, "values": cache, "filled": jnp.zeros(batch_size, jnp.int32)}

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """Nothing to attend to."""
        check_old_carry(self, prev_state, self._carried())
        return jax.tree.map(jnp.zeros_like, prev_state)

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence, in blocks as long as the window: each attends to itself and the one before."""
        check_sequence(self, state, xs, resets)
        if not resets.shape[0]:
            return super().unroll(state, xs, resets, rollout_extras)
        self._check(state, xs, time=1)
        query, key, value = unfold(self._project(fold(xs)), resets)
        keys, values = (
            jnp.concatenate([jnp.moveaxis(state[name], 1, 0), new]) for name, new in (("keys", key), ("values", value))
        )
        began = last_start(resets)
        mixed = self._attend(query, keys, values, jnp.maximum(began, -state["filled"]))
        y = self.out(mixed.reshape(resets.size, self.num_heads * self.head_features))
        return plain(unfold(y, resets), self._next_carry(state, keys, values, began[-1]), resets.shape)

    def _check(self, state: ModuleState, x: Any, *, time: int = 0) -> None:
        check_features(self, x, self.in_features)
        check_carry(self, state, self._carried(), jnp.shape(x)[time:-1])

    def _carried(self) -> list[tuple[int, ...]]:
        """Of each leaf of the carry, without batch axis."""
        cache = (self.window - 1, self.num_heads, self.head_features)
        return [(), cache, cache]

    def _project(self, x: Any) -> tuple[Array, Array, Array]:
        parts = self.qkv(x).reshape(x.shape[0], 3, self.num_heads, self.head_features)
        return parts[:, 0], parts[:, 1], parts[:, 2]

    def _attend(
        self,
        query: Float[Array, "time batch heads size"],
        keys: Float[Array, "steps batch heads size"],
        values: Float[Array, "steps batch heads size"],
        starts: Array,
    ) -> Float[Array, "time batch heads size"]:
        """Mixed values; ``keys`` begin ``window - 1`` steps before the sequence, ``starts`` bound what is
        visible.

        A weight of zero does not hide what is not finite, so steps that have such a thing are taken out, and
        every query that sees one gives NaN.
        """
        (query,), no_query = _finite_steps(query)
        (keys, values), no_key = _finite_steps(keys, values)
        time, window = query.shape[0], self.window
        blocks = -(-time // window)
        surplus = blocks * window - time
        query, starts, keys, values, no_key = (
            jnp.pad(a, [(0, surplus)] + [(0, 0)] * (a.ndim - 1)) for a in (query, starts, keys, values, no_key)
        )
        within, seen = jnp.arange(window)[:, None], jnp.arange(2 * window - 1)
        ages = within + window - 1 - seen
        index = jnp.arange(blocks)[:, None] * window + seen
        steps = index[:, None, :] - (window - 1)
        visible = (ages >= 0) & (ages < window)
        in_episode = steps[..., None] >= starts.reshape(blocks, window, 1, starts.shape[1])
        sees = visible[..., None] & in_episode
        mask = jnp.moveaxis(sees, -1, 1)[:, :, None]
        rows = query.reshape(blocks, window, *query.shape[1:])
        logits = jnp.einsum("nrbhd,nsbhd->nbhrs", rows, keys[index]) / math.sqrt(self.head_features)
        logits = logits + self.age_bias[...][:, jnp.clip(ages, 0, window - 1)]
        weights = jax.nn.softmax(logits, where=mask, axis=-1)
        mixed = jnp.einsum("nbhrs,nsbhd->nrbhd", weights, values[index])
        spoiled = jnp.any(sees & no_key[index][:, None], axis=2).reshape(blocks * window, -1)[:time] | no_query
        mixed = mixed.reshape(blocks * window, *query.shape[1:])[:time]
        return mixed + jnp.where(spoiled, jnp.nan, 0.0)[..., None, None]  # a sum, so that gradients are spoiled too

    def _next_carry(self, state: ModuleState, keys: Array, values: Array, began: Array) -> ModuleState:
        cached = self.window - 1
        time = keys.shape[0] - cached
        steps = jnp.arange(time - cached, time)[:, None]
        newest = (jnp.moveaxis(a[time:], 0, 1) for a in (keys, values))
        old = (steps < began).T
        kept = [select(old, jnp.zeros_like(a), a) for a in newest]
        filled = jnp.minimum(time - jnp.maximum(began, -state["filled"]), cached)
        return {"keys": kept[0], "values": kept[1], "filled": filled.astype(jnp.int32)}


def _finite_steps(
    *arrays: Float[Array, "steps batch heads size"],
) -> tuple[list[Float[Array, "steps batch heads size"]], Bool[Array, "steps batch"]]:
    """The arrays with zeros where one of them is not finite, and where that is."""
    wrong = functools.reduce(jnp.logical_or, (~jnp.all(jnp.isfinite(a), axis=(2, 3)) for a in arrays))
    return [select(wrong, jnp.zeros_like(a), a) for a in arrays], wrong
