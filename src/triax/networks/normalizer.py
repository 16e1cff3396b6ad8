"""Observations with mean zero and variance one, learned while acting."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PyTree

from triax.core.moments import Moments, init_moments, moments_std, update_moments
from triax.core.numbers import check_count, check_number
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, SizeError, StatefulModuleOutput


class NormalizerStatistics(nnx.Variable):
    """A running statistic: no gradient, no batch axis, saved with the network."""


class Normalizer(StatefulModule):
    """``(x - mean) / std`` for each leaf of a pytree, with the statistics of everything seen in training.

    ``shape`` is an int or a tuple (one array), or a pytree of ints, tuples, arrays or
    ``jax.ShapeDtypeStruct`` (a named tuple is a tree); or a Gymnasium space of boxes.
    ``std = sqrt(max(variance, epsilon))``, population variance; before any data it is ``initial_std`` and the mean
    zero, so the output is ``x / 10`` by default. ``clip`` bounds the output's magnitude. Mappings become plain dicts,
    numbers become floats.

    Each call emits its input as extras; ``update_statistics`` learns from those, each sample once, and a
    sample with a NaN, an infinity or a magnitude beyond some 3e14 in it (whose square would overflow in sums of
    float32) is left out whole: it is normalized, but not learned from. Calls never change the statistics. To
    start from known data rather than from ``x / 10``, call ``update_statistics`` on observations of a random
    policy first.
    Sums are carried in two floats each (:mod:`triax.core.moments`): exact for constants, large offsets, 1e9
    samples.
    """

    epsilon = 1e-6

    def __init__(self, shape: Any, *, clip: float | None = None, initial_std: float = 10.0):
        self.clip = clip if clip in (None, math.inf) else check_number("Normalizer", "clip", clip, positive=True)
        self.initial_std = check_number("Normalizer", "initial_std", initial_std, positive=True)
        paths, self.treedef = jax.tree_util.tree_flatten_with_path(example_of(shape))
        if not paths or any(0 in leaf.shape for _, leaf in paths):
            raise ValueError(f"Normalizer: shape must have sizes of at least 1, one or more; got {shape!r}.")
        self.shapes = tuple(leaf.shape for _, leaf in paths)
        self.names = _leaf_names([path for path, _ in paths])
        flat = init_moments({name: leaf for name, (_, leaf) in zip(self.names, paths, strict=True)})
        self.statistics = nnx.Dict(
            {field: _variables(value) for field, value in zip(Moments._fields, flat, strict=True)}
        )

    @property
    def counter(self) -> Float[Array, ""]:
        """The number of samples seen."""
        return self._moments().counter

    @property
    def mean(self) -> PyTree:
        """Their mean, a tree like one sample."""
        return self.treedef.unflatten([self._moments().mean[name] for name in self.names])

    @property
    def M2(self) -> PyTree:
        """Their summed squared deviations from the mean, a tree like one sample."""
        return self.treedef.unflatten([self._moments().m2[name] for name in self.names])

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        moments, leaves = self._moments(), self._leaves(x)
        stds = moments_std(moments, self.epsilon, self.initial_std)
        out = [self._normalize(name, leaf, moments, stds) for name, leaf in leaves.items()]
        return plain(self.treedef.unflatten(out)).replace(rollout_extras=self.treedef.unflatten(leaves.values()))

    def _normalize(self, name: str, x: Array, moments: Moments, stds: dict) -> Array:
        mean = moments.mean[name]
        deviation = (x.astype(mean.dtype) - mean) - moments.mean_rest[name]
        y = deviation / stds[name]
        return y if self.clip is None else jnp.clip(y, -self.clip, self.clip)

    def update_statistics(self, rollout_extras: Any) -> None:
        """Take in observations ``[time, batch, *shape]``, any number of leading axes."""
        moments = update_moments(self._moments(), self._leaves(rollout_extras))
        for field, value in moments._asdict().items():
            variables = self.statistics[field]
            for name, leaf in value.items() if isinstance(value, dict) else ():
                variables[name][...] = leaf
            if not isinstance(value, dict):
                variables[...] = value

    def _moments(self) -> Moments:
        def read(field: str) -> Any:
            value = self.statistics[field]
            return {n: value[n][...] for n in self.names} if isinstance(value, nnx.Dict) else value[...]

        return Moments(*map(read, Moments._fields))

    def _leaves(self, x: Any) -> dict[str, Array]:
        """The leaves of an input by name; refused where tree or shapes are others."""
        x = _plain_dicts(x)
        leaves, treedef = jax.tree.flatten(x)
        if treedef != self.treedef:
            raise ValueError(f"Normalizer: the input must be a tree like {self.treedef}; got {treedef}.")
        for name, leaf, shape in zip(self.names, leaves, self.shapes, strict=True):
            got = jnp.shape(leaf)
            if shape and got and got[-1] != shape[-1]:
                raise SizeError("Normalizer", shape[-1], got[-1])
            if got[len(got) - len(shape) :] != shape or len(got) <= len(shape):
                raise ValueError(f"Normalizer: {name} must be [batch, *{list(shape)}]; got {list(got)}.")
        return {name: jnp.asarray(leaf) for name, leaf in zip(self.names, leaves, strict=True)}


def _variables(value: Any) -> Any:
    if isinstance(value, dict):
        return nnx.Dict({name: NormalizerStatistics(leaf) for name, leaf in value.items()})
    return NormalizerStatistics(value)


def _leaf_names(paths: list[Any]) -> tuple[str, ...]:
    """The paths as text, ``arm/left``; with their positions before them where two are the same text."""
    names = [jax.tree_util.keystr(path, simple=True, separator="/") or "value" for path in paths]
    return tuple(names if len(set(names)) == len(names) else [f"{i}:{name}" for i, name in enumerate(names)])


def _plain_dicts(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {key: _plain_dicts(value) for key, value in x.items()}
    return _map_parts(_plain_dicts, x)


def _map_parts(function: Callable[[Any], Any], node: Any) -> Any:
    """``node`` with ``function`` of what is directly inside; leaves pass."""
    parts, treedef = jax.tree.flatten(node, is_leaf=lambda part: part is not node)
    return node if jax.tree_util.treedef_is_leaf(treedef) else treedef.unflatten(map(function, parts))


@functools.singledispatch
def example_of(shape: Any) -> Any:
    """A pytree of ``jax.ShapeDtypeStruct`` from sizes, shapes, arrays, spaces of boxes, or trees of them."""
    if hasattr(shape, "shape"):
        return jax.ShapeDtypeStruct(tuple(shape.shape), jnp.float32)
    if jax.tree_util.all_leaves([shape]):
        raise TypeError(
            "Normalizer: shape must be an int, a tuple, an array, a space of boxes, or a pytree of such; got "
            f"{shape!r}."
        )
    return _map_parts(example_of, shape)


@example_of.register(int)
@example_of.register(np.integer)
def _(shape: Any) -> Any:
    return jax.ShapeDtypeStruct((check_count("Normalizer", "shape", shape, low=0),), jnp.float32)


@example_of.register(list)
@example_of.register(tuple)
def _(shape: Any) -> Any:
    if all(isinstance(size, int | np.integer) for size in shape) and not hasattr(shape, "_fields"):
        sizes = tuple(check_count("Normalizer", "each size of shape", size, low=0) for size in shape)
        return jax.ShapeDtypeStruct(sizes, jnp.float32)
    return _map_parts(example_of, shape)


@example_of.register
def _(shape: Mapping) -> Any:
    return {key: example_of(value) for key, value in shape.items()}


@example_of.register(gym.Space)
def _(shape: Any) -> Any:
    raise TypeError(f"Normalizer: only boxes, and dicts and tuples of boxes, have a mean; got {shape}.")


@example_of.register(gym.spaces.Box)
def _(shape: Any) -> Any:
    return jax.ShapeDtypeStruct(shape.shape, jnp.float32)


@example_of.register(gym.spaces.Dict)
def _(shape: Any) -> Any:
    return {key: example_of(value) for key, value in shape.items()}


@example_of.register(gym.spaces.Tuple)
def _(shape: Any) -> Any:
    return tuple(map(example_of, shape.spaces))


def has_mean(space: gym.Space) -> bool:
    """Whether it is of boxes only, which a normalizer takes as they are."""
    if isinstance(space, gym.spaces.Dict):
        return all(map(has_mean, space.spaces.values()))
    if isinstance(space, gym.spaces.Tuple):
        return all(map(has_mean, space.spaces))
    return isinstance(space, gym.spaces.Box)
