"""A distribution over the bins of an interval, as in distributional reinforcement learning (C51)."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Float

from triax.core.arrays import argmax
from triax.core.keys import Key
from triax.proba_dists.base import DistParams, take_leaf
from triax.proba_dists.categorical import CategoricalDist
from triax.spaces.preprocess import to_batch


class DiscretizedIntervalDist(CategoricalDist):
    r"""Probabilities of ``num_bins`` equal bins of an interval.

    ``dist_params``: ``{'logits': (batch, num_bins)}``. Each bin stands for its centre, its *atom*:
    ``atoms[k] = low + (k + 0.5) (high - low) / num_bins``. Raw variates are as in :class:`CategoricalDist`;
    clean ones are floats, and always atoms: of the bin with the largest entry. So ``decode`` of ``mean`` is
    the most probable atom; the expectation is :meth:`expected_value`. ``space`` is ``Discrete(num_bins)``.

    Source: Bellemare et al. 2017, arXiv:1707.06887.

    Args:
        space: a ``Box`` with one component and two finite bounds, low < high; see also :meth:`of_range`.
        num_bins: number of bins.
        gumbel_softmax_tau: temperature of the relaxed ``sample`` and ``mode``.

    Raises:
        TypeError: ``space`` is no such ``Box``, or ``num_bins`` no positive integer.
    """

    def __init__(self, space: spaces.Space, num_bins: int = 20, gumbel_softmax_tau: float | int = 0.2) -> None:
        box, (low, high) = _interval(space)
        if isinstance(num_bins, bool) or not isinstance(num_bins, int | np.integer) or num_bins < 1:
            raise TypeError(f"DiscretizedIntervalDist: num_bins must be a positive integer; got {num_bins!r}.")
        super().__init__(spaces.Discrete(int(num_bins)), gumbel_softmax_tau)
        self._space_orig = box
        self._shape = box.shape
        self._low, self._high = low, high
        self._width = (high - low) / int(num_bins)
        self._atoms = (low + (np.arange(num_bins) + 0.5) * self._width).astype(np.float32)

    @classmethod
    def of_range(
        cls, low: Any, high: Any, num_bins: int = 20, gumbel_softmax_tau: float | int = 0.2
    ) -> "DiscretizedIntervalDist":
        """Over the interval between two finite numbers, low < high, of any type (``TypeError`` otherwise)."""
        try:
            bounds = float(low), float(high)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"DiscretizedIntervalDist: low and high must be numbers; got {low!r} and {high!r}."
            ) from error
        if not (math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] < bounds[1]):
            raise TypeError(
                f"DiscretizedIntervalDist: low and high must be finite, low < high; got {low!r} and {high!r}."
            )
        return cls(spaces.Box(*bounds, shape=(), dtype=np.float64), num_bins, gumbel_softmax_tau)

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``num_bins`` and ``gumbel_softmax_tau``."""
        return {"num_bins": self.num_bins, "gumbel_softmax_tau": self.gumbel_softmax_tau}

    @property
    def space_orig(self) -> spaces.Box:
        """The interval as it was given."""
        return self._space_orig

    @property
    def low(self) -> float:
        """Lower edge of the first bin."""
        return self._low

    @property
    def high(self) -> float:
        """Upper edge of the last bin."""
        return self._high

    @property
    def num_bins(self) -> int:
        """Number of bins."""
        return self._n

    @property
    def atoms(self) -> Float[np.ndarray, " num_bins"]:
        """The centres of the bins, float32."""
        return self._atoms

    @property
    def _clean_space(self) -> spaces.Space:
        return self.space_orig

    def value_of(self, X: Float[Array, "*batch num_bins"], rng: Key | None = None) -> Float[Array, "*batch"]:
        """The atom of the largest entry; ties: at random with ``rng``, else the lowest atom."""
        index = jnp.argmax(X, axis=-1) if rng is None else argmax(rng, X)
        return jnp.asarray(self._atoms)[index]

    def expected_value(self, dist_params: DistParams) -> Float[Array, " batch"]:
        """The probability-weighted average of the atoms."""
        return self._mean(dist_params) @ self._atoms

    def decode(self, rng: Key, X: Any) -> Float[Array, "batch ..."]:
        """The atom of the largest entry, in the shape of the box, ties broken at random."""
        X = take_leaf(self, "X", X, None, (self.num_bins,))
        return self.value_of(X, rng).reshape(-1, *self._shape)

    def preprocess_variate(self, rng: Key, X: Any) -> Float[Array, "batch num_bins"]:
        """Floats, one or a batch, to the one-hot of their bin; beyond the interval, of the outer bins."""
        X = to_batch(X, self._shape, self.space_orig).reshape(-1)
        # floor, not a search among edges: decode gives centres, which rounding cannot move into another bin.
        index = jnp.floor((X - self._low) / self._width)
        return super().preprocess_variate(rng, jnp.clip(index, 0, self.num_bins - 1).astype(jnp.int32))

    def _affine_transform(self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any) -> DistParams:
        p = self._mean(dist_params)
        scale, shift = (jnp.asarray(number)[..., None] for number in (scale, shift))
        f, f_inverse = value_transform or (lambda x: x, lambda x: x)
        wanted = f(scale * f_inverse(self._atoms) + shift)
        moved = jnp.clip(wanted, self._atoms[0], self._atoms[-1])
        # Each moved atom shares its mass between its two neighbours: the closer one gets more, all within one
        # bin's width. A sum over all pairs needs no order, so any scale will do.
        distance = jnp.abs(moved[..., :, None] - self._atoms) / self._width
        mass = jnp.sum(p[..., :, None] * jnp.maximum(1 - distance, 0), axis=-2)
        # XLA's fast kernels on CPUs take maximum(NaN, 0) for 0, so that a NaN reward would become a likely one.
        mass = jnp.where(jnp.any(jnp.isnan(wanted), axis=-1, keepdims=True), jnp.nan, mass)
        return {"logits": jnp.log(jnp.maximum(mass, 1e-16))}


def _interval(space: Any) -> tuple[spaces.Box, tuple[float, float]]:
    if not isinstance(space, spaces.Box) or math.prod(space.shape) != 1 or space.dtype.kind != "f":
        raise TypeError(f"DiscretizedIntervalDist: space must be a Box with one float component; got {space}.")
    low, high = float(space.low.item()), float(space.high.item())
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise TypeError(f"DiscretizedIntervalDist: the bounds must be finite, low < high; got {space}.")
    return space, (low, high)
