"""Normal distributions with independent components, for ``Box`` spaces."""

import math
from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from gymnasium import spaces
from jaxtyping import Array, Float, Shaped

from triax.core import random
from triax.core.keys import Key
from triax.proba_dists.base import BaseProbaDist, DistParams, take_leaf
from triax.proba_dists.box_bijection import BoxBijection
from triax.spaces import check_space
from triax.spaces.preprocess import to_batch

LOG_2PI = math.log(2 * math.pi)

CLIP_BOX = (-256.0, 256.0)
"""The default of ``NormalDist``, which stands for: use the bounds of the space."""

Pair = tuple[float | int, float | int]
Moments = tuple[Float[Array, "batch ..."], Float[Array, "batch ..."]]


class DiagonalNormal(BaseProbaDist):
    """What normal distributions share, whatever they make of the real numbers that they describe.

    ``dist_params``: ``{'mu': (batch, *shape), 'logvar': (batch, *shape)}``; ``logvar`` is the logarithm of
    the *variance*. Entropies and divergences are those of the real variable, summed over all axes of
    ``shape``.
    """

    _clip_logvar: tuple[float, float] | None

    @abstractmethod
    def _check_box(self, space: spaces.Box) -> None:
        """Raise a ``TypeError`` for boxes that do not fit."""

    def _set_space(self, space: Any) -> None:
        who = type(self).__name__
        if not isinstance(space, spaces.Box):
            raise TypeError(f"{who}: space must be a Box; got {space}.")
        check_space(space, who=who, argument="space")
        self._check_box(space)
        self._space = space

    @property
    def default_priors(self) -> DistParams:
        """Standard normal."""
        return {"mu": jnp.zeros((1, *self.space.shape)), "logvar": jnp.zeros((1, *self.space.shape))}

    def _moments(self, dist_params: DistParams, what: str = "dist_params") -> Moments:
        """Mean and clipped log-variance."""
        mu = take_leaf(self, what, dist_params, "mu", self.space.shape)
        logvar = take_leaf(self, what, dist_params, "logvar", self.space.shape)
        return mu, self._clip(logvar)

    def _clip(self, logvar: Array) -> Array:
        return logvar if self._clip_logvar is None else jnp.clip(logvar, *self._clip_logvar)

    def _sum(self, terms: Float[Array, "batch ..."]) -> Float[Array, " batch"]:
        return jnp.sum(terms, axis=tuple(range(1, terms.ndim)))

    def _draw(self, mu: Array, logvar: Array, rng: Key) -> tuple[Array, Array]:
        """Real numbers and the standard-normal noise behind them."""
        noise = random.normal(rng, jnp.broadcast_shapes(mu.shape, logvar.shape), mu.dtype)
        return mu + jnp.exp(logvar / 2) * noise, noise

    def _entropy(self, dist_params: DistParams) -> Float[Array, " batch"]:
        mu, logvar = self._moments(dist_params)
        return 0.5 * self._sum(1 + LOG_2PI + logvar + jnp.zeros_like(mu))

    def _cross_entropy(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        logvar_p, logvar_q, quadratic = self._compare(p, q)
        return 0.5 * self._sum(LOG_2PI + logvar_q + jnp.exp(logvar_p - logvar_q) + quadratic)

    def _kl_divergence(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        logvar_p, logvar_q, quadratic = self._compare(p, q)
        # expm1: two nearly equal distributions have a divergence that is small, not the rounding of 1 - 1.
        log_ratio = logvar_p - logvar_q
        return 0.5 * self._sum(jnp.expm1(log_ratio) - log_ratio + quadratic)

    def _compare(self, p: DistParams, q: DistParams) -> tuple[Array, Array, Array]:
        mu_p, logvar_p = self._moments(p, "p")
        mu_q, logvar_q = self._moments(q, "q")
        return logvar_p, logvar_q, jnp.square(mu_p - mu_q) * jnp.exp(-logvar_q)

    def _affine_transform(self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any) -> DistParams:
        mu, logvar = self._moments(dist_params)
        scale, shift = (_from_the_left(number, mu.ndim) for number in (scale, shift))
        f, f_inverse = value_transform or (lambda x: x, lambda x: x)

        def transform(mu: Array) -> Array:
            return f(scale * f_inverse(mu) + shift)

        # The slope at the mean scales the deviations: exact without a value_transform, else to first order.
        mu = jnp.broadcast_to(mu, jnp.broadcast_shapes(mu.shape, scale.shape, shift.shape))
        mu, slope = jax.jvp(transform, (mu,), (jnp.ones_like(mu),))
        smallest = jnp.finfo(slope.dtype).tiny
        return {"mu": mu, "logvar": self._clip(logvar + 2 * jnp.log(jnp.maximum(jnp.abs(slope), smallest)))}


def _from_the_left(number: Any, ndim: int) -> Array:
    """With axes of size one appended, so that ``(batch,)`` meets the batch axis."""
    number = jnp.asarray(number)
    return number.reshape(number.shape + (1,) * (ndim - number.ndim))


class NormalDist(DiagonalNormal):
    """Normally distributed real numbers, which ``decode`` maps into a ``Box`` (see :class:`BoxBijection`).

    ``dist_params``: ``{'mu': (batch, *shape), 'logvar': (batch, *shape)}``. Raw variates are the real
    numbers: densities, entropies and divergences are theirs, without the Jacobian of the map. ``decode`` of
    ``mean`` is the image of ``mu``, so the median of the decoded variable in each component, not its mean.

    To compare log-probabilities of an action, as PPO does, take all of ``preprocess_variate(decode(X))``: where
    the map saturates, and for integers, that differs from ``X``.

    Args:
        space: any ``Box``; its dtype may be an integer one.
        clip_box: bounds for all components in addition to those of the space: narrower ones replace the space's, and
            components without bounds get them. The default pair stands for none: components without bounds pass
            through unchanged, and wide ones are not cut.
        clip_reals: limits of the real numbers in components with two bounds, where the map saturates anyhow.
        clip_logvar: limits of ``logvar``.

    Raises:
        TypeError: ``space`` is not a ``Box``.
        ValueError: a pair is not ascending, or ``clip_box`` leaves nothing of a component.
    """

    def __init__(
        self,
        space: spaces.Space,
        clip_box: Pair = CLIP_BOX,
        clip_reals: Pair = (-30.0, 30.0),
        clip_logvar: Pair = (-20.0, 20.0),
    ) -> None:
        self._set_space(space)
        self._clip_box = ascending_pair(self, "clip_box", clip_box)
        self._clip_reals = ascending_pair(self, "clip_reals", clip_reals)
        self._clip_logvar = ascending_pair(self, "clip_logvar", clip_logvar)
        explicit = None if self._clip_box == CLIP_BOX else self._clip_box
        self._bijection = BoxBijection.of(self.space, explicit, self._clip_reals)

    def _check_box(self, space: spaces.Box) -> None:
        pass

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``clip_box``, ``clip_reals`` and ``clip_logvar``."""
        return {"clip_box": self._clip_box, "clip_reals": self._clip_reals, "clip_logvar": self._clip_logvar}

    def decode(self, rng: Key, X: Any) -> Shaped[Array, "batch ..."]:
        """Real numbers into the box; differentiable unless its dtype is an integer one."""
        return self._bijection.from_reals(take_leaf(self, "X", X, None, self.space.shape))

    def preprocess_variate(self, rng: Key, X: Any) -> Float[Array, "batch ..."]:
        """Box values to real numbers, finite also at the bounds; values beyond the bounds count as the bounds."""
        return self._bijection.to_reals(to_batch(X, self.space.shape, self.space))

    def _sample(self, dist_params: DistParams, rng: Key) -> Float[Array, "batch ..."]:
        return self._draw(*self._moments(dist_params), rng)[0]

    def _mean(self, dist_params: DistParams) -> Float[Array, "batch ..."]:
        return self._moments(dist_params)[0]

    def _mode(self, dist_params: DistParams) -> Float[Array, "batch ..."]:
        return self._moments(dist_params)[0]

    def _log_proba(self, dist_params: DistParams, X: Any) -> Float[Array, " batch"]:
        mu, logvar = self._moments(dist_params)
        X = take_leaf(self, "X", X, None, self.space.shape)
        return -0.5 * self._sum(LOG_2PI + logvar + jnp.square(X - mu) * jnp.exp(-logvar))


def ascending_pair(owner: BaseProbaDist, name: str, pair: Any) -> tuple[float, float]:
    """The pair as two floats; ``ValueError`` unless the first is smaller."""
    try:
        low, high = (float(bound) for bound in pair)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{type(owner).__name__}: {name} must be a pair of numbers; got {pair!r}.") from error
    if not low < high:
        raise ValueError(f"{type(owner).__name__}: {name} must be ascending; got {pair!r}.")
    return low, high
