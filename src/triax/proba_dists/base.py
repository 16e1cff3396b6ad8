"""What every distribution over a space offers: pure methods to override, jitted functions to call."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from gymnasium import spaces
from jaxtyping import Array, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.spaces import batch_decoder, decoder, frozen

DistParams = PyTree
"""Parameters of a batch of distributions: a dict of arrays ``[batch, ...]``, or a tuple or dict of such."""


class BaseProbaDist(ABC):
    """A family of distributions over a Gymnasium space, immutable; equal if it is the same one.

    Three forms of a variate: *raw* ``X``, the differentiable form that a network sees (one-hots, reals, or
    trees of these), *clean* arrays, as :func:`triax.spaces.encoder` gives them, and *members* of the space
    on the host. Parameters, raw and clean variates have a leading batch axis; numbers per row have the shape
    ``[batch]``.

    The properties ``sample`` ... ``affine_transform`` are jitted functions, also for use inside other jitted
    ones. A subclass overrides the pure methods of the same names with an underscore.
    """

    _space: spaces.Space

    @property
    def space(self) -> Any:
        """The Gymnasium space."""
        return self._space

    # ------------------------------------------------------------------ to override

    @property
    @abstractmethod
    def hyperparams(self) -> Any:
        """What the constructor was given apart from the space, by name."""

    @property
    @abstractmethod
    def default_priors(self) -> DistParams:
        """Parameters of an uninformed distribution, batch size 1 (they broadcast)."""

    @abstractmethod
    def decode(self, rng: Key, X: PyTree) -> PyTree:
        """Raw to clean, batched; traceable. ``rng`` is used to break ties only."""

    @abstractmethod
    def preprocess_variate(self, rng: Key, X: PyTree) -> PyTree:
        """Clean to raw, traceable: one element or a batch of them in, a batch out; ``rng`` is not used."""

    @abstractmethod
    def _sample(self, dist_params: DistParams, rng: Key) -> PyTree:
        """Raw."""

    @abstractmethod
    def _mean(self, dist_params: DistParams) -> PyTree:
        """Raw."""

    @abstractmethod
    def _mode(self, dist_params: DistParams) -> PyTree:
        """Raw."""

    @abstractmethod
    def _log_proba(self, dist_params: DistParams, X: PyTree) -> Float[Array, " batch"]:
        """Of raw variates."""

    @abstractmethod
    def _entropy(self, dist_params: DistParams) -> Float[Array, " batch"]: ...

    @abstractmethod
    def _cross_entropy(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]: ...

    @abstractmethod
    def _kl_divergence(self, p: DistParams, q: DistParams) -> Float[Array, " batch"]: ...

    @abstractmethod
    def _affine_transform(self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any) -> DistParams:
        """``value_transform`` is ``None`` or a pair ``(f, f_inverse)``, for a composite one for each part."""

    def _sample_with_log_proba(self, dist_params: DistParams, rng: Key) -> tuple[PyTree, Float[Array, " batch"]]:
        X = self._sample(dist_params, rng)
        return X, self._log_proba(dist_params, X)

    # ------------------------------------------------------------------ jitted

    @cached_property
    def sample(self) -> Callable[[DistParams, Key], PyTree]:
        """``(dist_params, rng) -> X``: one raw variate per row, differentiable in the parameters."""
        return jax.jit(self._sample)

    @cached_property
    def sample_with_log_proba(self) -> Callable[[DistParams, Key], tuple[PyTree, Array]]:
        """``(dist_params, rng) -> (X, logP)``, both differentiable in the parameters.

        For real numbers logP is the density at X, for one-hots the log-probability of the value that X decodes to.
        """
        return jax.jit(self._sample_with_log_proba)

    @cached_property
    def mean(self) -> Callable[[DistParams], PyTree]:
        """``(dist_params) -> X``, raw."""
        return jax.jit(self._mean)

    @cached_property
    def mode(self) -> Callable[[DistParams], PyTree]:
        """``(dist_params) -> X``, raw."""
        return jax.jit(self._mode)

    @cached_property
    def log_proba(self) -> Callable[[DistParams, PyTree], Array]:
        """``(dist_params, X) -> logP``: log-probability, or density of the raw variate, in nats."""
        return jax.jit(self._log_proba)

    @cached_property
    def entropy(self) -> Callable[[DistParams], Array]:
        """``(dist_params) -> H``, in nats."""
        return jax.jit(self._entropy)

    @cached_property
    def cross_entropy(self) -> Callable[[DistParams, DistParams], Array]:
        """``(p, q) -> -E_p log q``, in nats."""
        return jax.jit(self._cross_entropy)

    @cached_property
    def kl_divergence(self) -> Callable[[DistParams, DistParams], Array]:
        """``(p, q) -> E_p[log p - log q]``, in nats."""
        return jax.jit(self._kl_divergence)

    @property
    def affine_transform(self) -> Callable[..., DistParams]:
        """``(dist_params, scale, shift, value_transform=None) -> dist_params``, of ``f(scale * f_inverse(X) + shift)``.

        ``scale`` and ``shift`` are numbers or arrays ``[batch]``. ``value_transform`` is a pair ``(f, f_inverse)``
        of increasing, element-wise functions, or iterates as one. Jitted, once for each pair.
        """
        return self._call_affine_transform

    def _call_affine_transform(
        self, dist_params: DistParams, scale: Any, shift: Any, value_transform: Any = None
    ) -> DistParams:
        functions, structure = jax.tree.flatten(value_transform)
        static = tuple(function if callable(function) else tuple(function) for function in functions)
        return self._jitted_affine_transform(dist_params, scale, shift, static, structure)

    @cached_property
    def _jitted_affine_transform(self) -> Callable[..., DistParams]:
        def transform(dist_params: DistParams, scale: Any, shift: Any, functions: tuple, structure: Any) -> DistParams:
            return self._affine_transform(dist_params, scale, shift, jax.tree.unflatten(structure, functions))

        return jax.jit(transform, static_argnums=(3, 4))

    # ------------------------------------------------------------------ on the host

    def postprocess_variate(self, rng: Key, X: PyTree, index: int = 0, batch_mode: bool = False) -> Any:
        """Raw to clean on the host: row ``index`` as a member of the space.

        With ``batch_mode`` all rows, as NumPy arrays of the space's dtypes. ``rng`` is used to break ties only.
        """
        if batch_mode:
            return self._to_members(jax.device_get(self._jitted_decode(rng, X)))
        return self._to_member(jax.device_get(self._jitted_decode_row(rng, X, index)))

    @property
    def _clean_space(self) -> spaces.Space:
        return self.space

    @cached_property
    def _to_member(self) -> Callable[[PyTree], Any]:
        return decoder(self._clean_space)

    @cached_property
    def _to_members(self) -> Callable[[PyTree], Any]:
        return batch_decoder(self._clean_space)

    @cached_property
    def _jitted_decode(self) -> Callable[[Key, PyTree], PyTree]:
        return jax.jit(self.decode)

    @cached_property
    def _jitted_decode_row(self) -> Callable[[Key, PyTree, int], PyTree]:
        return jax.jit(lambda rng, X, index: jax.tree.map(lambda leaf: leaf[index], self.decode(rng, X)))

    # ------------------------------------------------------------------ structure

    @property
    def dist_params_structure(self) -> Any:
        """The tree structure of the parameters."""
        return jax.tree.structure(jax.eval_shape(lambda: self.default_priors))

    def example_params(self, rng: Key, batch_size: int) -> DistParams:
        """Standard-normal noise, float32, of the structure and shapes that parameters have; traceable."""
        leaves, structure = jax.tree.flatten(jax.eval_shape(lambda: self.default_priors))
        keys = random.split(rng, len(leaves))
        noise = [random.normal(key, (batch_size, *leaf.shape[1:])) for key, leaf in zip(keys, leaves, strict=True)]
        return jax.tree.unflatten(structure, noise)

    @cached_property
    def _identity(self) -> Hashable:
        return type(self), frozen(self.__getstate__())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BaseProbaDist):
            return NotImplemented
        return self is other or self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __copy__(self) -> "BaseProbaDist":
        return self

    def __deepcopy__(self, memo: dict) -> "BaseProbaDist":
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without compiled functions, which cannot be pickled."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space}, {self.hyperparams})"


def take_leaf(owner: BaseProbaDist, what: str, tree: Any, name: str | None, shape: tuple[int, ...]) -> Array:
    """The array ``tree[name]``, or ``tree`` for no name, checked to have the shape ``(batch, *shape)``.

    Raises:
        ValueError: it is not there, or has another shape.
    """
    who = type(owner).__name__
    if name is not None:
        if not isinstance(tree, Mapping) or name not in tree:
            found = f"a dict with the keys {list(tree)}" if isinstance(tree, Mapping) else type(tree).__name__
            raise ValueError(f"{who}: {what} must be a dict with the key {name!r}; got {found}.")
        tree, what = tree[name], f"{what}[{name!r}]"
    if isinstance(tree, Mapping | list | tuple):
        raise ValueError(f"{who}: {what} must be an array; got {type(tree).__name__}.")
    leaf = jnp.asarray(tree)
    if name is not None and jnp.issubdtype(leaf.dtype, jnp.integer):
        leaf = leaf.astype(jnp.float32)  # 0 logits mean 0.0
    if leaf.ndim != len(shape) + 1 or leaf.shape[1:] != shape:
        expected = ", ".join(["batch", *map(str, shape)])
        raise ValueError(f"{who}: {what} must have the shape ({expected}); got {leaf.shape}.")
    return leaf
