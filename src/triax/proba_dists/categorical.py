"""Distributions over the values of a ``Discrete`` space."""

import contextlib
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Bool, Float, Int

from triax.core import random
from triax.core.arrays import argmax
from triax.core.keys import Key
from triax.proba_dists.base import BaseProbaDist, DistParams, take_leaf
from triax.spaces import default_preprocessor
from triax.spaces.preprocess import Preprocessor

LOG_ZERO = 1e9
"""What is less likely by a factor exp(-1e9) than the most likely value has probability zero, exactly."""


class CategoricalDist(BaseProbaDist):
    r"""Probabilities :math:`p = \mathrm{softmax}(\text{logits})` of the ``n`` values of a ``Discrete`` space.

    ``dist_params``: ``{'logits': (batch, n)}``. Raw variates are one-hot, or nearly (``sample``) or not at
    all (``mean``: ``p`` itself); ``decode`` takes the largest entry. Logits may be ``-inf`` or hugely
    negative: the probability is then exactly 0, its logarithm about -1e9, and everything, gradients too,
    stays finite. A row of nothing but ``-inf`` gives NaN; see :func:`mask_logits`.

    Args:
        space: a ``Discrete`` space, of any ``start``.
        gumbel_softmax_tau: temperature of the relaxed ``sample`` and ``mode``; small is closer to one-hot.

    Raises:
        TypeError: ``space`` is not ``Discrete``.
        ValueError: the temperature is not positive.
    """

    def __init__(self, space: spaces.Space, gumbel_softmax_tau: float | int = 0.2) -> None:
        if not isinstance(space, spaces.Discrete):
            raise TypeError(f"{type(self).__name__}: space must be Discrete; got {space}.")
        self._space = space
        self._n = int(space.n)
        self._tau = check_tau(type(self).__name__, gumbel_softmax_tau)

    @cached_property
    def _one_hot(self) -> Preprocessor:
        return default_preprocessor(self._space)

    @property
    def gumbel_softmax_tau(self) -> float:
        """Temperature of the relaxation."""
        return self._tau

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``{'gumbel_softmax_tau': ...}``."""
        return {"gumbel_softmax_tau": self._tau}

    @property
    def default_priors(self) -> DistParams:
        """Zero logits: every value equally likely."""
        return {"logits": jnp.zeros((1, self._n))}

    def decode(self, rng: Key, X: Any) -> Int[Array, " batch"]:
        """The value with the largest entry, ties broken at random; int32."""
        X = take_leaf(self, "X", X, None, (self._n,))
        return argmax(rng, X).astype(jnp.int32) + int(self.space.start)

    def preprocess_variate(self, rng: Key, X: Any) -> Float[Array, "batch n"]:
        """Integers, a scalar or ``(batch,)``, to one-hots."""
        return self._one_hot(rng, X)

    def _log_p(self, dist_params: DistParams, what: str = "dist_params") -> Float[Array, "batch n"]:
        return log_probs(take_leaf(self, what, dist_params, "logits", (self._n,)))

    def _sample(self, dist_params: DistParams, rng: Key) -> Float[Array, "batch n"]:
        return gumbel_softmax(rng, self._log_p(dist_params), self._tau)

    def _sample_with_log_proba(self, dist_params: DistParams, rng: Key) -> tuple[Array, Float[Array, " batch"]]:
        log_p = self._log_p(dist_params)
        X = gumbel_softmax(rng, log_p, self._tau)
        return X, log_p_of_largest(log_p, X)

    def _mean(self, dist_params: DistParams) -> Float[Array, "batch n"]:
        return jnp.exp(self._log_p(dist_params))

    def _mode(self, dist_params: DistParams) -> Float[Array, "batch n"]:
        return jax.nn.softmax(self._log_p(dist_params) / self._tau)

    def _log_proba(self, dist_params: DistParams, X: Any) -> Float[Array, " batch"]:
        return jnp.sum(take_leaf(self, "X", X, None, (self._n,)) * self._log_p(dist_params), axis=-1)

    def _entropy(self, dist_params: DistParams) -> Float[Array, " batch"]:
        log_p = self._log_p(dist_params)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)

    def _cross_entropy(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        return -jnp.sum(jnp.exp(self._log_p(p, "p")) * self._log_p(q, "q"), axis=-1)

    def _kl_divergence(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        log_p = self._log_p(p, "p")
        return jnp.sum(jnp.exp(log_p) * (log_p - self._log_p(q, "q")), axis=-1)

    def _affine_transform(self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any) -> DistParams:
        raise NotImplementedError(f"{type(self).__name__}: the values of {self.space} cannot be scaled and shifted.")


# ------------------------------------------------------------------ the mathematics, for any leading axes


def check_tau(who: str, tau: float | int) -> float:
    """``tau`` as a float; ``ValueError`` unless it is positive."""
    if not tau > 0:
        raise ValueError(f"{who}: gumbel_softmax_tau must be positive; got {tau}.")
    return float(tau)


def log_probs(logits: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    """Logarithms of normalised probabilities; at least about ``-LOG_ZERO``, so that 0 log 0 is 0."""
    logits = logits - jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    logits = jnp.maximum(logits, -min(LOG_ZERO, float(jnp.finfo(logits.dtype).max) / 4))
    return logits - jnp.log(jnp.sum(jnp.exp(logits), axis=-1, keepdims=True))


def gumbel_softmax(rng: Key, log_p: Float[Array, "*batch n"], tau: float) -> Float[Array, "*batch n"]:
    """A relaxed one-hot sample, whose largest entry is distributed as ``exp(log_p)``.

    Source: Jang et al. 2017, arXiv:1611.01144, eq. 1.
    """
    return jax.nn.softmax((log_p + random.gumbel(rng, log_p.shape, log_p.dtype)) / tau)


def log_p_of_largest(log_p: Float[Array, "*batch n"], X: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    """``log_p`` at the largest entry of ``X``."""
    index = jnp.argmax(X, axis=-1, keepdims=True)
    return jnp.take_along_axis(log_p, index, axis=-1)[..., 0]


def mask_logits(
    logits: Float[Array, "*batch n"], mask: Bool[Array, "..."] | Int[Array, "..."] | np.ndarray
) -> Float[Array, "*batch n"]:
    """``logits`` where ``mask`` is true (or 1), elsewhere so low that the probability is exactly 0.

    ``mask`` broadcasts against ``logits``. The result is finite, and so is whatever ``CategoricalDist``
    computes from it; masked logits get no gradient.

    Raises:
        ValueError: the mask does not broadcast; or a row of a concrete mask allows nothing. In a traced one such a
            row becomes NaN, which the learning rules report; it is never silently uniform.
    """
    _check_broadcasts(np.shape(mask), logits.shape)
    with contextlib.suppress(jax.errors.TracerArrayConversionError):  # inside jit nothing is known yet
        _refuse_empty_rows(np.asarray(mask))
    mask = jnp.asarray(mask).astype(bool)
    lowest = jnp.where(mask.any(axis=-1, keepdims=True), jnp.finfo(logits.dtype).min, jnp.nan)
    return jnp.where(mask, logits, lowest.astype(logits.dtype))


def _check_broadcasts(mask: tuple[int, ...], logits: tuple[int, ...]) -> None:
    fits = 1 <= len(mask) <= len(logits)
    if not fits or any(m not in (1, n) for m, n in zip(reversed(mask), reversed(logits), strict=False)):
        raise ValueError(f"mask_logits: mask must have the shape of the logits, {logits}; got {mask}.")


def _refuse_empty_rows(mask: np.ndarray) -> None:
    empty = ~mask.astype(bool).any(axis=-1)
    if empty.any():
        rows = "" if empty.ndim == 0 else f" in the rows {np.argwhere(empty)[:5].tolist()}"
        raise ValueError(f"mask_logits: at least one action must be allowed; all are masked{rows}.")
