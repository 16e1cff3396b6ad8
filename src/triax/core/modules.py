"""Flax modules as pure functions: split once, merge inside the traced call."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from triax.core.keys import Key, as_raw_key, fold_name


@dataclass(frozen=True)
class SplitModule:
    """What a module is apart from its numbers; ``params`` and ``variables`` are nested dicts of arrays.

    ``variables`` are all non-trainable ones (running statistics, caches). RNG streams belong to neither: each
    ``merge`` seeds them from the key it is given, so that one key decides everything a call draws.
    """

    graphdef: Any
    _params: Any
    _rngs: Any
    _variables: Any

    @classmethod
    def of(cls, module: nnx.Module) -> tuple["SplitModule", dict, dict]:
        """The module taken apart, with fresh copies of its arrays: ``(split, params, variables)``."""
        graphdef, params, rngs, variables = _split(module)
        split = cls(graphdef, *(jax.tree.map(_abstract, tree) for tree in (params, rngs, variables)))
        return split, _fresh(params), _fresh(variables)

    def merge(self, params: dict, variables: dict, rng: Key | None, *, is_training: bool) -> nnx.Module:
        """The module again, in training or evaluation mode; call it inside the traced function."""
        module = nnx.merge(
            self.graphdef,
            _fill(self._params, params),
            _reseed(self._rngs, rng),
            _fill(self._variables, variables),
            copy=True,
        )
        (module.train if is_training else module.eval)()
        return module

    @staticmethod
    def variables_of(module: nnx.Module) -> dict:
        """The non-trainable variables of a merged module after its call."""
        return nnx.to_pure_dict(_split(module)[3])


def _split(module: nnx.Module) -> tuple[Any, Any, Any, Any]:
    graphdef, params, rngs, variables = nnx.split(module, nnx.Param, nnx.RngState, ...)
    return graphdef, params, rngs, variables


def _abstract(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _fresh(state: Any) -> dict:
    return jax.tree.map(jnp.copy, nnx.to_pure_dict(state))


def _fill(template: Any, arrays: dict) -> Any:
    filled = jax.tree.map(lambda leaf: leaf, template)
    nnx.replace_by_pure_dict(filled, arrays)
    return filled


def _reseed(template: Any, rng: Key | None) -> Any:
    """Every stream gets a key of its own, derived from its place in the module; counts start at zero."""

    def seed(path: tuple, leaf: Any) -> Any:
        if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jnp.zeros(leaf.shape, leaf.dtype)
        if rng is None:
            raise ValueError("a module with RNG streams needs a key: got rng=None. Pass a jax.random key.")
        key = fold_name(as_raw_key(rng), jax.tree_util.keystr(path))
        keys = jax.random.split(key, leaf.size).reshape((*leaf.shape, -1)) if leaf.shape else key
        return jax.random.wrap_key_data(keys)

    return jax.tree_util.tree_map_with_path(seed, template)
