"""The normal distribution squashed into a bounded ``Box`` by tanh."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Float

from triax.core.keys import Key
from triax.proba_dists.base import DistParams, take_leaf
from triax.proba_dists.normal import LOG_2PI, DiagonalNormal, Pair, ascending_pair
from triax.spaces import BoxBounds, canonical_dtype
from triax.spaces.preprocess import to_batch

EDGE = 1e-7
"""The smallest distance from a bound, relative to the half-width, that is told apart."""


class SquashedNormalDist(DiagonalNormal):
    r"""The distribution of :math:`c + h \tanh(u)`, :math:`u \sim N(\mu, \sigma^2)`, in each component of a
    bounded box.

    Centre :math:`c` and half-width :math:`h` are those of the bounds. ``dist_params`` as for
    :class:`NormalDist`. Raw variates are box values already (float32). ``mean`` and ``mode`` are the image
    of :math:`\mu`, the median.

    ``log_proba`` is the density in units of the box, Jacobian included; a value within 1e-7 :math:`h` of a
    bound, or beyond, counts as that far from it. ``sample_with_log_proba`` uses the sample before the
    squashing, so it is right however large :math:`\sigma` is. ``entropy``, ``cross_entropy`` and
    ``affine_transform`` are those of :math:`u`, *not* of the squashed variable; ``kl_divergence`` is the
    same for both. To regularize the entropy of the actions, average ``-logP`` of samples.

    Source: Haarnoja et al. 2018, arXiv:1812.05905, appendix C.

    Args:
        space: a ``Box`` of floats with two different finite bounds in each component.
        clip_logvar: limits of ``logvar``, or ``None`` for none.

    Raises:
        TypeError: ``space`` is no such ``Box``.
        ValueError: the pair is not ascending.
    """

    def __init__(self, space: spaces.Space, clip_logvar: Pair | None = None) -> None:
        self._set_space(space)
        self._clip_logvar = None if clip_logvar is None else ascending_pair(self, "clip_logvar", clip_logvar)
        bounds = BoxBounds.of(self.space)
        self._low, self._high = bounds.low, bounds.high
        self._dtype = canonical_dtype(self.space)
        low, high = (bound.astype(np.float64) for bound in (self._low, self._high))
        real = np.float64 if self._dtype == np.float64 else np.float32
        self._centre, self._half = ((high + low) / 2).astype(real), ((high - low) / 2).astype(real)

    def _check_box(self, space: spaces.Box) -> None:
        bounds = BoxBounds.of(space)
        is_interval = bounds.has_low & bounds.has_high & (bounds.low < bounds.high)
        if space.dtype.kind != "f" or not is_interval.all():
            raise TypeError(
                "SquashedNormalDist: space must be a Box of floats with finite bounds, low < high, in each"
                f" component; got {space}. Try NormalDist."
            )

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``{'clip_logvar': ...}``."""
        return {"clip_logvar": self._clip_logvar}

    def decode(self, rng: Key, X: Any) -> Float[Array, "batch ..."]:
        """Box values to box values: rounding must not leave the bounds."""
        X = take_leaf(self, "X", X, None, self.space.shape)
        return jnp.clip(X.astype(self._dtype), self._low, self._high)

    def preprocess_variate(self, rng: Key, X: Any) -> Float[Array, "batch ..."]:
        """The same values, with a batch axis."""
        return to_batch(X, self.space.shape, self.space).astype(self._centre.dtype)

    def _sample(self, dist_params: DistParams, rng: Key) -> Float[Array, "batch ..."]:
        return self._squash(self._draw(*self._moments(dist_params), rng)[0])

    def _mean(self, dist_params: DistParams) -> Float[Array, "batch ..."]:
        return self._squash(self._moments(dist_params)[0])

    def _mode(self, dist_params: DistParams) -> Float[Array, "batch ..."]:
        return self._mean(dist_params)

    def _squash(self, u: Array) -> Array:
        return jnp.tanh(u) * self._half + self._centre

    def _sample_with_log_proba(self, dist_params: DistParams, rng: Key) -> tuple[Array, Float[Array, " batch"]]:
        mu, logvar = self._moments(dist_params)
        u, noise = self._draw(mu, logvar, rng)
        log_slope = np.log(self._half) + 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))
        log_p = self._sum(-0.5 * (LOG_2PI + logvar + jnp.square(noise)) - log_slope)
        return self._squash(u), log_p

    def _log_proba(self, dist_params: DistParams, X: Any) -> Float[Array, " batch"]:
        mu, logvar = self._moments(dist_params)
        X = take_leaf(self, "X", X, None, self.space.shape)
        # With a, b the distances from the bounds: arctanh((X - c) / h) = (log a - log b) / 2, and the slope
        # h (1 - tanh^2 u) = a b / h. Differences keep their digits near the bounds.
        log_a = jnp.log(jnp.maximum(X - self._low, EDGE * self._half))
        log_b = jnp.log(jnp.maximum(self._high - X, EDGE * self._half))
        normal = -0.5 * (LOG_2PI + logvar + jnp.square((log_a - log_b) / 2 - mu) * jnp.exp(-logvar))
        return self._sum(normal - (log_a + log_b - np.log(self._half)))
