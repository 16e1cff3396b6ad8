"""Distributions over ``MultiDiscrete`` and ``MultiBinary`` spaces: one categorical factor per component."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Float, Int

from triax.core import random
from triax.core.arrays import argmax
from triax.core.keys import Key
from triax.proba_dists.base import BaseProbaDist, DistParams, take_leaf
from triax.proba_dists.categorical import check_tau, gumbel_softmax, log_p_of_largest, log_probs
from triax.spaces import default_preprocessor
from triax.spaces.preprocess import Preprocessor

Stacked = dict[int, Float[Array, "..."]]
"""Arrays ``[batch, factors, n]`` by ``n``: one operation serves all factors with the same number of values."""


class FactorizedCategoricalDist(BaseProbaDist):
    """Independent categorical factors, one for each component (in C order) of a multi-axis discrete space.

    ``dist_params``: tuple of ``{'logits': (batch, n_i)}``; raw variates: list of ``(batch, n_i)``; clean
    variates: integers ``(batch, *shape)``. See :class:`CategoricalDist` for what holds for each factor.

    Args:
        space: ``MultiDiscrete`` (any shape, any ``start``) or ``MultiBinary`` (factors have two values).
        gumbel_softmax_tau: temperature of the relaxed ``sample`` and ``mode``.

    Raises:
        TypeError: ``space`` is of another kind.
    """

    def __init__(self, space: spaces.Space, gumbel_softmax_tau: float | int = 0.2) -> None:
        if not isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
            raise TypeError(f"{type(self).__name__}: space must be MultiDiscrete or MultiBinary; got {space}.")
        self._space = space
        self._tau = check_tau(type(self).__name__, gumbel_softmax_tau)
        is_binary = isinstance(space, spaces.MultiBinary)
        nvec = np.full(space.shape, 2) if is_binary else space.nvec
        start = np.zeros(space.shape, np.int32) if is_binary else space.start.astype(np.int32)
        self._nvec = nvec
        self._sizes: list[int] = nvec.ravel().tolist()
        self._start = start
        self._dtype = np.dtype(np.int8) if is_binary else np.dtype(np.int32)
        self._groups = {n: np.flatnonzero(nvec.ravel() == n) for n in dict.fromkeys(self._sizes)}

    @cached_property
    def _one_hots(self) -> Preprocessor:
        return default_preprocessor(spaces.MultiDiscrete(self._nvec, start=self._start))

    @property
    def hyperparams(self) -> tuple[dict[str, Any], ...]:
        """The temperature, for each factor."""
        return tuple({"gumbel_softmax_tau": self._tau} for _ in self._sizes)

    @property
    def default_priors(self) -> DistParams:
        """Zero logits."""
        return tuple({"logits": jnp.zeros((1, n))} for n in self._sizes)

    def decode(self, rng: Key, X: Any) -> Int[Array, "batch ..."]:
        """For each factor the value with the largest entry, ties broken at random."""
        keys = self._keys(rng)
        picked = {n: argmax(keys[n], stacked) for n, stacked in self._stack_variates(X).items()}
        columns = jnp.stack(self._unstack(picked), axis=-1)
        return (columns.reshape(-1, *self._start.shape) + self._start).astype(self._dtype)

    def preprocess_variate(self, rng: Key, X: Any) -> list[Float[Array, "batch n"]]:
        """Integers, ``shape`` or ``(batch, *shape)``, to one one-hot per component."""
        return self._one_hots(rng, X)

    # ------------------------------------------------------------------ factors of equal size, stacked

    def _stack(self, factors: Any, what: str, name: str | None) -> Stacked:
        if not isinstance(factors, Sequence) or len(factors) != len(self._sizes):
            found = f"{len(factors)}" if isinstance(factors, Sequence) else type(factors).__name__
            raise ValueError(
                f"{type(self).__name__}: {what} must be a tuple of {len(self._sizes)} factors; got {found}."
            )
        leaves = [
            take_leaf(self, f"{what}[{k}]", factor, name, (n,))
            for k, (factor, n) in enumerate(zip(factors, self._sizes, strict=True))
        ]
        return {n: jnp.stack([leaves[k] for k in where], axis=-2) for n, where in self._groups.items()}

    def _unstack(self, stacked: dict[int, Array]) -> list[Array]:
        """Factors are on axis 1."""
        factors: dict[int, Array] = {}
        for n, where in self._groups.items():
            factors.update({int(k): stacked[n][:, row] for row, k in enumerate(where)})
        return [factors[k] for k in range(len(self._sizes))]

    def _stack_variates(self, X: Any) -> Stacked:
        return self._stack(X, "X", None)

    def _log_p(self, dist_params: DistParams, what: str = "dist_params") -> Stacked:
        return {n: log_probs(logits) for n, logits in self._stack(dist_params, what, "logits").items()}

    def _keys(self, rng: Key) -> dict[int, Key]:
        """Within a group the factors' noise is drawn at once, so it is independent too."""
        if len(self._groups) == 1:
            return dict.fromkeys(self._groups, rng)
        return dict(zip(self._groups, random.split(rng, len(self._groups)), strict=True))

    def _total(self, terms: Callable[..., Array], *stacked: Stacked) -> Float[Array, " batch"]:
        """The sum of ``terms`` over all factors."""
        parts = [jnp.sum(terms(*(group[n] for group in stacked)), axis=(-2, -1)) for n in self._groups]
        return sum(parts[1:], start=parts[0])

    # ------------------------------------------------------------------ the distribution

    def _sample(self, dist_params: DistParams, rng: Key) -> list[Float[Array, "batch n"]]:
        return self._sample_with_log_proba(dist_params, rng)[0]

    def _sample_with_log_proba(self, dist_params: DistParams, rng: Key) -> tuple[list[Array], Float[Array, " batch"]]:
        log_p, keys = self._log_p(dist_params), self._keys(rng)
        X = {n: gumbel_softmax(keys[n], log_p[n], self._tau) for n in self._groups}
        return self._unstack(X), self._total(lambda a, b: log_p_of_largest(a, b)[..., None], log_p, X)

    def _mean(self, dist_params: DistParams) -> list[Float[Array, "batch n"]]:
        return self._unstack({n: jnp.exp(log_p) for n, log_p in self._log_p(dist_params).items()})

    def _mode(self, dist_params: DistParams) -> list[Float[Array, "batch n"]]:
        return self._unstack({n: jax.nn.softmax(log_p / self._tau) for n, log_p in self._log_p(dist_params).items()})

    def _log_proba(self, dist_params: DistParams, X: Any) -> Float[Array, " batch"]:
        return self._total(lambda log_p, x: x * log_p, self._log_p(dist_params), self._stack_variates(X))

    def _entropy(self, dist_params: DistParams) -> Float[Array, " batch"]:
        return self._total(lambda log_p: -jnp.exp(log_p) * log_p, self._log_p(dist_params))

    def _cross_entropy(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        return self._total(lambda log_p, log_q: -jnp.exp(log_p) * log_q, self._log_p(p, "p"), self._log_p(q, "q"))

    def _kl_divergence(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        return self._total(
            lambda log_p, log_q: jnp.exp(log_p) * (log_p - log_q), self._log_p(p, "p"), self._log_p(q, "q")
        )

    def _affine_transform(self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any) -> DistParams:
        raise NotImplementedError(f"{type(self).__name__}: the values of {self.space} cannot be scaled and shifted.")
