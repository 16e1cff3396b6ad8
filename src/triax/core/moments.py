"""Running mean and variance of pytrees, exact where float32 sums are not.

Count, mean and sum of squared deviations are each kept as a float and the rest that its rounding left
behind (a "double-float", some 48 bits in float32), so a sample still counts after a thousand million others.
A batch is measured from its own first sample, so that a constant has variance zero and large offsets cancel.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PyTree

from triax.core.sharding import gathered, num_shards, per_device


class Moments(NamedTuple):
    """Moments of the samples seen so far; each value is the sum of the named field and its ``_rest``.

    ``counter`` is a scalar (a sum of weights), ``mean`` and ``m2`` (sum of squared deviations from the
    mean) are pytrees of one sample's structure and shapes.
    """

    counter: Float[Array, ""]
    mean: PyTree
    m2: PyTree
    counter_rest: Float[Array, ""]
    mean_rest: PyTree
    m2_rest: PyTree


def init_moments(example: PyTree) -> Moments:
    """The moments of no samples at all, for samples like ``example`` (arrays, numbers or shape structs).

    Leaves are float32, or float64 where the example is and x64 is on.
    """
    zeros = jax.tree.map(lambda x: jnp.zeros(jnp.shape(x), _accumulator_dtype(x)), example)
    zero = jnp.zeros((), jnp.result_type(jnp.float32, *map(_accumulator_dtype, jax.tree.leaves(example))))
    return Moments(zero, zeros, zeros, zero, zeros, zeros)


def update_moments(moments: Moments, batch: PyTree, weights: ArrayLike | None = None) -> Moments:
    """The moments with a batch added, whose leaves have any number of shared leading axes.

    ``weights`` (floats, or bools as a mask) has those leading axes. A sample with an entry that is not
    finite, or so large that sums of its square would overflow (3e14 in float32), is left out whole.
    Raises ``ValueError`` for leaves of another shape. Source: Chan, Golub & LeVeque 1979, eq. 2.1.
    """
    if num_shards() == 1:
        return merge_moments(moments, _moments_of(batch, moments.mean, weights))
    return functools.reduce(merge_moments, _moments_by_device(batch, moments.mean, weights), moments)


def merge_moments(a: Moments, b: Moments) -> Moments:
    """The moments of two sets of samples taken together."""
    count, count_rest = _add((a.counter, a.counter_rest), (b.counter, b.counter_rest))
    share = jnp.where(count > 0, b.counter / jnp.where(count > 0, count, 1), 0)
    leaves_a, leaves_b = _leaves(a), _leaves(b)
    merged = [_merge_leaf(x, y, a.counter, share) for x, y in zip(leaves_a, leaves_b, strict=True)]
    structure = jax.tree.structure(a.mean)
    mean, mean_rest, m2, m2_rest = (structure.unflatten([leaf[k] for leaf in merged]) for k in range(4))
    return Moments(count, mean, m2, count_rest, mean_rest, m2_rest)


def moments_variance(moments: Moments) -> PyTree:
    """The population variance, ``m2 / counter``; zero where nothing was counted."""
    count = jnp.where(moments.counter > 0, moments.counter, 1)
    return jax.tree.map(lambda m2: m2 / count, moments.m2)


def moments_std(moments: Moments, epsilon: float | int = 1e-6, empty: float | int = 1.0) -> PyTree:
    """``sqrt(max(variance, epsilon))``, or ``empty`` while nothing was counted."""
    deviation = jax.tree.map(lambda v: jnp.sqrt(jnp.maximum(v, epsilon)), moments_variance(moments))
    return jax.tree.map(lambda d: jnp.where(moments.counter > 0, d, jnp.asarray(empty, d.dtype)), deviation)


def _accumulator_dtype(leaf: Any) -> jnp.dtype:
    dtype = leaf.dtype if hasattr(leaf, "dtype") else jnp.result_type(leaf)
    return jnp.result_type(jax.dtypes.canonicalize_dtype(dtype), jnp.float32)


def _leaves(moments: Moments) -> list[tuple[Array, ...]]:
    fields = (moments.mean, moments.mean_rest, moments.m2, moments.m2_rest)
    return list(zip(*map(jax.tree.leaves, fields), strict=True))


def _merge_leaf(a: tuple[Array, ...], b: tuple[Array, ...], count_a: Array, share: Array) -> tuple[Array, ...]:
    mean_a, rest_a, m2_a, m2_rest_a = a
    mean_b, rest_b, m2_b, m2_rest_b = b
    shift, shift_rest = _two_sum(mean_b, -mean_a)
    shift_rest = shift_rest + (rest_b - rest_a)
    share = share.astype(mean_a.dtype)
    mean = _add((mean_a, rest_a), (shift * share, shift_rest * share))
    between = jnp.square(shift + shift_rest) * share * count_a.astype(mean_a.dtype)
    m2 = _add(_add((m2_a, m2_rest_a), (m2_b, m2_rest_b)), (between, jnp.zeros_like(between)))
    return (*mean, *m2)


def _moments_of(batch: PyTree, example: PyTree, weights: ArrayLike | None) -> Moments:
    """The moments of one batch; ``example`` tells which axes of a leaf belong to a sample."""
    if jax.tree.structure(batch) != jax.tree.structure(example):
        raise ValueError(
            f"update_moments: batch must have the structure {jax.tree.structure(example)}; "
            f"got {jax.tree.structure(batch)}"
        )
    examples = jax.tree.leaves(example)
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(batch)]
    leading = _leading_shape(leaves, examples)
    flat = [x.reshape(math.prod(leading), *e.shape).astype(e.dtype) for x, e in zip(leaves, examples, strict=True)]
    weight = _sample_weights(flat, weights, leading)
    parts = [_moments_of_leaf(x, weight) for x in flat]
    structure = jax.tree.structure(example)
    mean, mean_rest, m2 = (structure.unflatten([part[k] for part in parts]) for k in range(3))
    count = weight.sum()
    return Moments(count, mean, m2, jnp.zeros_like(count), mean_rest, jax.tree.map(jnp.zeros_like, m2))


def _moments_by_device(batch: PyTree, example: PyTree, weights: ArrayLike | None) -> list[Moments]:
    """Of the samples of each device, which lie along the last of the leading axes: ``[batch]``, ``[time, batch]``."""
    samples = (batch,) if weights is None else (batch, jnp.asarray(weights))
    first, one = jax.tree.leaves(batch)[0], jax.tree.leaves(example)[0]
    own = per_device(
        lambda samples: gathered(_moments_of(samples[0], example, *(samples[1:] or (None,)))),
        (jnp.ndim(first) - jnp.ndim(one) - 1,),
        None,
    )
    stacked = own(samples)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(len(stacked.counter))]


def _leading_shape(leaves: list[Array], examples: list[Array]) -> tuple[int, ...]:
    shapes = {x.shape[: x.ndim - e.ndim] for x, e in zip(leaves, examples, strict=True)}
    alike = all(x.shape[x.ndim - e.ndim :] == e.shape for x, e in zip(leaves, examples, strict=True))
    if len(shapes) != 1 or not alike:
        raise ValueError(
            "update_moments: every leaf must be one sample's shape after the same leading axes; got shapes "
            f"{[x.shape for x in leaves]} for samples of shapes {[e.shape for e in examples]}"
        )
    return shapes.pop()


def _sample_weights(leaves: list[Array], weights: ArrayLike | None, leading: tuple[int, ...]) -> Float[Array, " n"]:
    """The weight of each sample: zero where an entry's square cannot be summed (NaN compares as false)."""
    given = jnp.ones(leading) if weights is None else jnp.asarray(weights)
    if given.shape != leading:
        raise ValueError(
            f"update_moments: weights must have shape {leading}, the batch's leading axes; got {given.shape}"
        )
    usable = jnp.ones(math.prod(leading), bool)
    for x in leaves:
        limit = math.sqrt(float(jnp.finfo(x.dtype).max)) / 2**16
        usable &= jnp.max(jnp.abs(x), axis=tuple(range(1, x.ndim)), initial=0) <= limit
    return jnp.where(usable, given.ravel().astype(jnp.float32), 0)


def _moments_of_leaf(x: Float[Array, "n *f"], weight: Float[Array, " n"]) -> tuple[Array, Array, Array]:
    """Mean, rest of the mean, and sum of squared deviations, in two passes from the first sample."""
    origin = x[jnp.argmax(weight > 0)] if len(x) else jnp.zeros(x.shape[1:], x.dtype)
    total = weight.sum().astype(x.dtype)
    weight = weight.astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1))
    y = jnp.where(weight > 0, x - origin, 0)  # times zero would keep a NaN
    mean = jnp.sum(weight * y, axis=0) / jnp.where(total > 0, total, 1)
    m2 = jnp.sum(weight * jnp.square(y - mean), axis=0)
    return *_two_sum(jnp.where(total > 0, origin, 0), mean), m2


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` rounded, and exactly what the rounding lost. Source: Knuth, TAOCP vol. 2, section 4.2.2."""
    total = a + b
    b_seen = total - a
    return total, (a - (total - b_seen)) + (b - b_seen)


def _add(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """The sum of two double-floats."""
    total, lost = _two_sum(a[0], b[0])
    return _two_sum(total, lost + (a[1] + b[1]))
