"""The distribution that fits any supported space: independent parts, nested as the space is."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gymnasium import spaces
from jaxtyping import Array, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.proba_dists.base import BaseProbaDist, DistParams
from triax.proba_dists.categorical import CategoricalDist
from triax.proba_dists.factorized import FactorizedCategoricalDist
from triax.proba_dists.normal import NormalDist
from triax.spaces import check_space


class ProbaDist(BaseProbaDist):
    """Independent parts, one for each leaf of a space, with the defaults of the parts' classes.

    ================================  =======================================  ===========================
    space                             ``dist_params``                          raw variate
    ================================  =======================================  ===========================
    ``Discrete(n)``                   ``{'logits': (B, n)}``                   ``(B, n)``
    ``Box(shape)``                    ``{'mu': .., 'logvar': (B, *shape)}``    ``(B, *shape)``, real numbers
    ``MultiDiscrete``                 tuple of ``{'logits': (B, n_i)}``        list of ``(B, n_i)``
    ``MultiBinary``                   tuple of ``{'logits': (B, 2)}``          list of ``(B, 2)``
    ``Tuple``                         tuple of the parts                       list of the parts
    ``Dict``                          dict of the parts                        dict of the parts
    ================================  =======================================  ===========================

    Methods take tuples and lists alike. Log-probabilities, entropies and divergences are sums over the
    parts, which are sampled with keys of their own. ``affine_transform`` takes ``scale``, ``shift`` and
    ``value_transform`` in the nesting of the space and transforms part by part; give ``None`` for parts to
    keep, as for discrete ones, which raise ``NotImplementedError`` otherwise.

    Raises:
        TypeError: the space is not supported (:func:`triax.spaces.check_space`).
    """

    def __init__(self, space: spaces.Space) -> None:
        check_space(space, who="ProbaDist", argument="space")
        self._space = space
        self._parts: list[BaseProbaDist] = [_leaf_dist(part) for part in _split(space, space, "space")]

    @property
    def hyperparams(self) -> Any:
        """Those of the parts, in the nesting of the space."""
        return self._join([part.hyperparams for part in self._parts])

    @property
    def default_priors(self) -> DistParams:
        """Those of the parts."""
        return self._join([part.default_priors for part in self._parts])

    def decode(self, rng: Key, X: PyTree) -> PyTree:
        """Part by part."""
        return self._join([part.decode(key, x) for part, key, x in self._zip(self._keys(rng), self._split("X", X))])

    def preprocess_variate(self, rng: Key, X: PyTree) -> PyTree:
        """Part by part."""
        return self._join([part.preprocess_variate(rng, x) for part, x in self._zip(self._split("X", X))], list)

    # ------------------------------------------------------------------ nesting

    def _split(self, what: str, tree: Any) -> list[Any]:
        return list(_split(self.space, tree, what))

    def _join(self, items: list[Any], sequence: Callable = tuple) -> Any:
        return _join(self.space, iter(items), sequence)

    def _zip(self, *columns: Any) -> Iterator[tuple]:
        return zip(self._parts, *columns, strict=True)

    def _keys(self, rng: Key) -> Any:
        return [rng] if len(self._parts) == 1 else random.split(rng, len(self._parts))

    def _map(self, function: Callable, dist_params: DistParams) -> list[Any]:
        return [function(part, params) for part, params in self._zip(self._split("dist_params", dist_params))]

    # ------------------------------------------------------------------ the distribution

    def _sample(self, dist_params: DistParams, rng: Key) -> PyTree:
        params = self._split("dist_params", dist_params)
        return self._join([part._sample(p, key) for part, p, key in self._zip(params, self._keys(rng))], list)

    def _sample_with_log_proba(self, dist_params: DistParams, rng: Key) -> tuple[PyTree, Float[Array, " batch"]]:
        params = self._split("dist_params", dist_params)
        pairs = [part._sample_with_log_proba(p, key) for part, p, key in self._zip(params, self._keys(rng))]
        return self._join([X for X, _ in pairs], list), _sum([log_p for _, log_p in pairs])

    def _mean(self, dist_params: DistParams) -> PyTree:
        return self._join(self._map(lambda part, params: part._mean(params), dist_params), list)

    def _mode(self, dist_params: DistParams) -> PyTree:
        return self._join(self._map(lambda part, params: part._mode(params), dist_params), list)

    def _log_proba(self, dist_params: DistParams, X: PyTree) -> Float[Array, " batch"]:
        columns = self._split("dist_params", dist_params), self._split("X", X)
        return _sum([part._log_proba(params, x) for part, params, x in self._zip(*columns)])

    def _entropy(self, dist_params: DistParams) -> Float[Array, " batch"]:
        return _sum(self._map(lambda part, params: part._entropy(params), dist_params))

    def _cross_entropy(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        columns = self._split("p", p), self._split("q", q)
        return _sum([part._cross_entropy(a, b) for part, a, b in self._zip(*columns)])

    def _kl_divergence(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]:
        columns = self._split("p", p), self._split("q", q)
        return _sum([part._kl_divergence(a, b) for part, a, b in self._zip(*columns)])

    def _affine_transform(self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any) -> DistParams:
        columns = (
            self._split("dist_params", dist_params),
            self._split("scale", scale),
            self._split("shift", shift),
            self._split("value_transform", value_transform)
            if value_transform is not None
            else [None] * len(self._parts),
        )
        return self._join([_transform_part(*column) for column in self._zip(*columns)])


def _transform_part(part: BaseProbaDist, params: Any, scale: Any, shift: Any, value_transform: Any) -> Any:
    if scale is None and shift is None and value_transform is None:
        return params
    scale, shift = 1.0 if scale is None else scale, 0.0 if shift is None else shift
    return part._affine_transform(params, scale, shift, value_transform)


def _sum(terms: list[Array]) -> Array:
    return functools.reduce(lambda a, b: a + b, terms)


@functools.singledispatch
def _leaf_dist(space: spaces.Space) -> BaseProbaDist:
    raise NotImplementedError(f"no distribution over {space}")


_leaf_dist.register(spaces.Discrete, CategoricalDist)
_leaf_dist.register(spaces.Box, NormalDist)
_leaf_dist.register(spaces.MultiDiscrete, FactorizedCategoricalDist)
_leaf_dist.register(spaces.MultiBinary, FactorizedCategoricalDist)


@functools.singledispatch
def _split(space: Any, tree: Any, what: str) -> Iterator[Any]:
    """The parts of ``tree`` that belong to the leaves of ``space``, in order."""
    yield tree


@_split.register(spaces.Tuple)
def _(space: Any, tree: Any, what: str) -> Iterator[Any]:
    if not isinstance(tree, Sequence) or len(tree) != len(space.spaces):
        found = f"{len(tree)}" if isinstance(tree, Sequence) else type(tree).__name__
        raise ValueError(f"ProbaDist: {what} must be a tuple of {len(space.spaces)} parts; got {found}.")
    for index, (part, value) in enumerate(zip(space.spaces, tree, strict=True)):
        yield from _split(part, value, f"{what}[{index}]")


@_split.register(spaces.Dict)
def _(space: Any, tree: Any, what: str) -> Iterator[Any]:
    if not isinstance(tree, Mapping) or tree.keys() != space.spaces.keys():
        found = f"the keys {list(tree)}" if isinstance(tree, Mapping) else type(tree).__name__
        raise ValueError(f"ProbaDist: {what} must be a dict with the keys {list(space.spaces)}; got {found}.")
    for key, part in space.spaces.items():
        yield from _split(part, tree[key], f"{what}[{key!r}]")


@functools.singledispatch
def _join(space: Any, leaves: Iterator[Any], sequence: Callable) -> Any:
    """Undoes ``_split``; ``sequence`` makes what stands for a ``Tuple``."""
    return next(leaves)


@_join.register(spaces.Tuple)
def _(space: Any, leaves: Iterator[Any], sequence: Callable) -> Any:
    return sequence([_join(part, leaves, sequence) for part in space.spaces])


@_join.register(spaces.Dict)
def _(space: Any, leaves: Iterator[Any], sequence: Callable) -> Any:
    return {key: _join(part, leaves, sequence) for key, part in space.spaces.items()}
