"""Flax modules as pure functions: split once, merge inside the traced call."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import PyTree

from triax.core import random
from triax.core.key_types import is_typed_key
from triax.core.keys import Key, as_typed_key, fold_name


@dataclass(frozen=True, eq=False)
class SplitModule:
    """What a module is apart from its numbers; ``params`` and ``variables`` are nested dicts of arrays.

    ``variables`` are all non-trainable ones (running statistics, caches). RNG streams belong to neither: each
    ``merge`` seeds them from the key it is given, so that one key decides everything a call draws.

    Modules of one structure are equal, and hash alike if their static attributes can be hashed.
    """

    graphdef: Any
    _params: Any
    _rngs: Any
    _variables: Any

    @cached_property
    def _structure(self) -> tuple:
        leaves, treedef = jax.tree.flatten((self._params, self._rngs, self._variables))
        return self.graphdef, treedef, tuple((leaf.shape, leaf.dtype) for leaf in leaves)

    @cached_property
    def _hash(self) -> int:
        return hash(self._structure)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SplitModule):
            return NotImplemented
        return self is other or self._structure == other._structure

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, module: nnx.Module) -> tuple["SplitModule", dict, dict]:
        """The module taken apart, with fresh copies of its arrays: ``(split, params, variables)``."""
        graphdef, *states = _split(module)
        params, rngs, variables = (strong_copy(state) for state in states)
        split = cls(graphdef, *(jax.tree.map(_abstract, state) for state in (params, rngs, variables)))
        return split, nnx.to_pure_dict(params), nnx.to_pure_dict(variables)

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

    def variables_of(self, module: nnx.Module) -> dict:
        """The non-trainable variables of a merged module after its call; those born in it (``sow``) are left out."""
        return _select(nnx.to_pure_dict(self._variables), nnx.to_pure_dict(_split(module)[3]))


def write_into(module: nnx.Module, params: dict, variables: dict) -> None:
    """Give a module, in place, the numbers of another of its structure; its RNG streams stay."""
    for kind, values in ((nnx.Param, params), (_NOT_TRAINED, variables)):
        state = nnx.state(module, kind)
        nnx.replace_by_pure_dict(state, values)
        nnx.update(module, state)


_NOT_TRAINED = nnx.Not(nnx.Any(nnx.Param, nnx.RngState))


def strong_copy(tree: PyTree) -> PyTree:
    """Fresh arrays of fixed dtypes: a weakly typed one would turn strong in training and compile everything again."""
    return jax.tree.map(_strong, tree)


def _strong(leaf: Any) -> jax.Array:
    if is_typed_key(leaf):
        return jnp.copy(leaf)
    return jnp.array(leaf, jax.dtypes.canonicalize_dtype(jnp.result_type(leaf)))


def _split(module: nnx.Module) -> tuple[Any, Any, Any, Any]:
    graphdef, params, rngs, variables = nnx.split(module, nnx.Param, nnx.RngState, ...)
    return graphdef, params, rngs, variables


def _abstract(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _select(template: Any, found: Any) -> Any:
    """The entries of ``found`` that ``template`` has too."""
    if not isinstance(template, Mapping):
        return found
    return {name: _select(part, found[name]) for name, part in template.items()}


def _fill(template: Any, arrays: dict) -> Any:
    filled = jax.tree.map(lambda leaf: leaf, template)
    nnx.replace_by_pure_dict(filled, arrays)
    return filled


def _reseed(template: Any, rng: Key | None) -> Any:
    """Every stream gets a key of its own, derived from its place in the module; a single one gets ``rng`` itself.

    Counts start at zero.
    """
    is_alone = sum(map(is_typed_key, jax.tree.leaves(template))) == 1

    def seed(path: tuple, leaf: Any) -> Any:
        if not is_typed_key(leaf):
            return jnp.zeros(leaf.shape, leaf.dtype)
        if rng is None:
            raise ValueError("a module with RNG streams needs a key: got rng=None. Pass a jax.random key.")
        key = as_typed_key(rng) if is_alone else fold_name(as_typed_key(rng), jax.tree_util.keystr(path))
        return random.split(key, leaf.shape) if leaf.shape else key

    return jax.tree_util.tree_map_with_path(seed, template)
