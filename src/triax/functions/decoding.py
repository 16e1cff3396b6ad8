"""From distribution parameters to what a user sees: members of a space, or values in original units."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from gymnasium.spaces import Space
from jaxtyping import Array, Float, PyTree

from triax.core.arrays import argmax
from triax.core.keys import Key
from triax.functions.evaluate import host_array
from triax.losses.value_transforms import ValueTransform
from triax.proba_dists import BaseProbaDist, DiscretizedIntervalDist, EmpiricalQuantileDist, ProbaDist
from triax.spaces import decoder


@runtime_checkable
class Decoding(Protocol):
    """Traceable: batched distribution parameters in, batched clean arrays out."""

    @property
    def proba_dist(self) -> Any:
        """The distribution."""
        ...

    @property
    def to_member(self) -> Callable[[PyTree], Any]:
        """One row on the host, as the user gets it."""
        ...

    def sample(self, rng: Key, dist_params: PyTree) -> tuple[PyTree, Float[Array, " batch"]]:
        """A draw and the log-probability of exactly this draw."""
        ...

    def mean(self, rng: Any, dist_params: PyTree) -> PyTree:
        """The mean."""
        ...

    def mode(self, rng: Key, dist_params: PyTree) -> PyTree:
        """The mode."""
        ...


def dist_of(space: Space, proba_dist: Any, *, who: str) -> BaseProbaDist:
    """``proba_dist``, checked to be over ``space``; the default for the space if it is ``None``.

    Raises:
        TypeError: it is no distribution, or one over another space.
    """
    if proba_dist is None:
        return ProbaDist(space)
    if not isinstance(proba_dist, BaseProbaDist):
        raise TypeError(f"{who}: proba_dist must be a distribution of triax.proba_dists; got {proba_dist!r}.")
    if proba_dist._clean_space != space:
        raise TypeError(f"{who}: proba_dist must be over {space}; got one over {proba_dist._clean_space}.")
    return proba_dist


class SpaceDecoding:
    """Draws of ``proba_dist`` as members of the space that it is over."""

    def __init__(self, proba_dist: BaseProbaDist) -> None:
        self.proba_dist = proba_dist
        self.to_member = decoder(proba_dist._clean_space)

    def sample(self, rng: Key, dist_params: PyTree) -> tuple[PyTree, Float[Array, " batch"]]:
        """A draw, decoded; its log-probability is the one that a learner will compute from the decoded draw."""
        clean = self.proba_dist.decode(rng, self.proba_dist.sample(dist_params, rng))
        return clean, self.log_proba(rng, dist_params, clean)

    def log_proba(self, rng: Key, dist_params: PyTree, clean: PyTree) -> Float[Array, " batch"]:
        """Of clean arrays, through the same preprocessing as in learning: an unchanged policy has ratio 1."""
        return self.proba_dist.log_proba(dist_params, self.proba_dist.preprocess_variate(rng, clean))

    def mean(self, rng: Any, dist_params: PyTree) -> PyTree:
        """The distribution's mean, decoded; for discrete parts the most probable member."""
        return self.proba_dist.decode(rng, self.proba_dist.mean(dist_params))

    def mode(self, rng: Key, dist_params: PyTree) -> PyTree:
        """The distribution's mode, decoded."""
        return self.proba_dist.decode(rng, self.proba_dist.mode(dist_params))


@dataclass(frozen=True)
class BinnedValueDecoding:
    """Values of a ``DiscretizedIntervalDist``: its atoms, in original units."""

    proba_dist: DiscretizedIntervalDist
    value_transform: ValueTransform
    to_member: Callable[[PyTree], Any] = host_array

    def sample(self, rng: Key, dist_params: PyTree) -> tuple[PyTree, Float[Array, " batch"]]:
        """One atom per row."""
        index = jnp.argmax(self.proba_dist.sample(dist_params, rng), axis=-1)
        one_hot = (jnp.arange(self.proba_dist.num_bins) == index[:, None]).astype(jnp.float32)
        return self._values()[index], self.proba_dist.log_proba(dist_params, one_hot)

    def mean(self, rng: Any, dist_params: PyTree) -> PyTree:
        """The expectation of the value in original units (not the inverse of an expected transformed value)."""
        return self.proba_dist.mean(dist_params) @ self._values()

    def transformed_mean(self, dist_params: PyTree) -> Float[Array, " batch"]:
        """The mean, transformed: what a deterministic function would estimate."""
        return self.value_transform.transform_func(self.mean(None, dist_params))

    def mode(self, rng: Key, dist_params: PyTree) -> PyTree:
        """The most probable atom."""
        return self._values()[argmax(rng, dist_params["logits"])]

    def _values(self) -> Float[Array, " num_bins"]:
        return self.value_transform.inverse_func(jnp.asarray(self.proba_dist.atoms))


@dataclass(frozen=True)
class QuantileValueDecoding:
    """Values of an ``EmpiricalQuantileDist``, in original units."""

    proba_dist: EmpiricalQuantileDist
    value_transform: ValueTransform
    to_member: Callable[[PyTree], Any] = host_array

    def sample(self, rng: Key, dist_params: PyTree) -> tuple[PyTree, Float[Array, " batch"]]:
        """One of the row's values, each as likely as the others."""
        value = self.proba_dist.sample(dist_params, rng)
        return self.value_transform.inverse_func(value), self.proba_dist.log_proba(dist_params, value)

    def mean(self, rng: Any, dist_params: PyTree) -> PyTree:
        """The expectation of the value in original units."""
        values = self.value_transform.inverse_func(dist_params["values"])
        return self.proba_dist.mean({**dist_params, "values": values})

    def transformed_mean(self, dist_params: PyTree) -> Float[Array, " batch"]:
        """The mean, transformed: what a deterministic function would estimate."""
        return self.value_transform.transform_func(self.mean(None, dist_params))

    def mode(self, rng: Key, dist_params: PyTree) -> PyTree:
        """What the distribution calls its mode."""
        return self.value_transform.inverse_func(self.proba_dist.mode(dist_params))
