"""A distribution of real numbers given by quantiles (QR-DQN, IQN)."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Float

from triax.core import random
from triax.core.keys import Key
from triax.proba_dists.base import BaseProbaDist, DistParams, take_leaf
from triax.proba_dists.quantiles import quantiles
from triax.spaces.preprocess import to_batch


class EmpiricalQuantileDist(BaseProbaDist):
    """Equally likely values, each with the fraction of the distribution that lies below it.

    ``dist_params``: ``{'values': (batch, num_quantiles), 'quantile_fractions': (batch, num_quantiles)}``.
    Variates, raw and clean, are real numbers ``(batch,)``.

    ``mean`` is the plain average of the values. That is right for fractions at midpoints (:func:`quantiles`)
    and for independent uniform ones (:func:`quantiles_uniform`), of which it is the Monte-Carlo estimate,
    but not for fractions spaced otherwise. ``log_proba`` is the logarithm of the share of values equal to
    ``X``, ``-inf`` if none is. ``mode``, ``entropy``, ``cross_entropy`` and ``kl_divergence`` raise
    ``NotImplementedError``: a finite set of distinct values has no density.

    Source: Dabney et al. 2017, arXiv:1710.10044; Dabney et al. 2018, arXiv:1806.06923.

    Args:
        num_quantiles: number of values.

    Raises:
        TypeError: it is no positive integer.
    """

    def __init__(self, num_quantiles: int) -> None:
        if isinstance(num_quantiles, bool) or not isinstance(num_quantiles, int | np.integer) or num_quantiles < 1:
            raise TypeError(f"EmpiricalQuantileDist: num_quantiles must be a positive integer; got {num_quantiles!r}.")
        self._num_quantiles = int(num_quantiles)
        self._space = spaces.Box(-np.inf, np.inf, (self._num_quantiles,), np.float32)
        self._value_space = spaces.Box(-np.inf, np.inf, (), np.float32)

    @property
    def num_quantiles(self) -> int:
        """Number of values."""
        return self._num_quantiles

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``{'num_quantiles': ...}``."""
        return {"num_quantiles": self._num_quantiles}

    @property
    def default_priors(self) -> DistParams:
        """Zeros for values, ones for fractions."""
        shape = (1, self._num_quantiles)
        return {"values": jnp.zeros(shape), "quantile_fractions": jnp.ones(shape)}

    @property
    def _clean_space(self) -> spaces.Space:
        return self._value_space

    def example_params(self, rng: Key, batch_size: int) -> DistParams:
        """Standard-normal values at midpoints."""
        values = random.normal(rng, (batch_size, self._num_quantiles))
        return {"values": values, "quantile_fractions": quantiles(batch_size, self._num_quantiles)}

    def decode(self, rng: Key, X: Any) -> Float[Array, " batch"]:
        """The same numbers."""
        return take_leaf(self, "X", X, None, ()).astype(jnp.float32)

    def preprocess_variate(self, rng: Key, X: Any) -> Float[Array, " batch"]:
        """The same numbers, with a batch axis."""
        return to_batch(X, (), self._clean_space).astype(jnp.float32)

    def _values(self, dist_params: DistParams) -> Float[Array, "batch num_quantiles"]:
        return take_leaf(self, "dist_params", dist_params, "values", (self._num_quantiles,))

    def _sample(self, dist_params: DistParams, rng: Key) -> Float[Array, " batch"]:
        values = self._values(dist_params)
        index = random.randint(rng, (len(values), 1), 0, self._num_quantiles)
        return jnp.take_along_axis(values, index, axis=-1)[:, 0]

    def _mean(self, dist_params: DistParams) -> Float[Array, " batch"]:
        return jnp.mean(self._values(dist_params), axis=-1)

    def _log_proba(self, dist_params: DistParams, X: Any) -> Float[Array, " batch"]:
        X = take_leaf(self, "X", X, None, ())
        return jnp.log(jnp.mean(self._values(dist_params) == X[:, None], axis=-1, dtype=jnp.float32))

    def _affine_transform(self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any) -> DistParams:
        values = self._values(dist_params)
        fractions = take_leaf(self, "dist_params", dist_params, "quantile_fractions", (self._num_quantiles,))
        scale, shift = (jnp.asarray(number)[..., None] for number in (scale, shift))
        f, f_inverse = value_transform or (lambda x: x, lambda x: x)
        # A negative scale turns the distribution round: what lay above now lies below.
        fractions = jnp.where(scale < 0, 1 - fractions, fractions)
        return {"values": f(scale * f_inverse(values) + shift), "quantile_fractions": fractions}

    def _mode(self, dist_params: DistParams) -> Any:
        raise self._undefined("mode")

    def _entropy(self, dist_params: DistParams) -> Any:
        raise self._undefined("entropy")

    def _cross_entropy(self, p: DistParams, q: DistParams) -> Any:
        raise self._undefined("cross_entropy")

    def _kl_divergence(self, p: DistParams, q: DistParams) -> Any:
        raise self._undefined("kl_divergence")

    def _undefined(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"EmpiricalQuantileDist: {name} is not defined for a set of quantiles, which has no density."
            " Use mean, or bins: DiscretizedIntervalDist."
        )
