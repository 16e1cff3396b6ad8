"""What a function must return: its shapes, the check of them, and the message when they differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from triax.core import random
from triax.core.keys import Key
from triax.core.tree_differences import describe_structure
from triax.networks.types import PPONetworkOutput
from triax.proba_dists import BaseProbaDist


@runtime_checkable
class Output(Protocol):
    """The declared output of a function of states, or of states and actions."""

    def example(self, rng: Key, batch_size: int, num_actions: int | None = None) -> PyTree:
        """Standard-normal noise of the right structure; ``num_actions`` adds an axis of that size after the batch."""
        ...

    def check(self, owner: str, output: Any, batch_size: int, num_actions: int | None = None) -> None:
        """Raise a ``TypeError`` unless ``output``, as ``abstract`` gives it, is as declared."""
        ...


def abstract(output: Any) -> Any:
    """Shapes and dtypes in place of JAX arrays; other leaves stay as they are."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, jax.Array) else leaf, output
    )


@dataclass(frozen=True)
class ScalarOutput:
    """One floating-point value for each ``per``: ``[batch]``, or ``[batch, num_actions]``."""

    per: str

    def example(self, rng: Key, batch_size: int, num_actions: int | None = None) -> PyTree:
        """Standard-normal values."""
        return random.normal(rng, self._shape(batch_size, num_actions))

    def check(self, owner: str, output: Any, batch_size: int, num_actions: int | None = None) -> None:
        """Raise a ``TypeError`` that says the expected shape and a likely remedy."""
        if not isinstance(output, jax.ShapeDtypeStruct):
            raise TypeError(f"{owner}: func must return a JAX array; got {type(output).__name__}.")
        if not jnp.issubdtype(output.dtype, jnp.floating):
            raise TypeError(f"{owner}: func must return floating-point values; got dtype {output.dtype}.")
        expected = self._shape(batch_size, num_actions)
        if output.shape == expected:
            return
        what = f"one value per {self.per}" if num_actions is None else "one value per action for each state"
        hint = ""
        if output.shape == (*expected, 1):
            hint = " Did you forget jnp.squeeze(x, axis=-1)?"
        elif num_actions is None and output.ndim == 2:
            hint = " Reduce the last axis to one value."
        raise TypeError(f"{owner}: func must return {what}, shape {expected}; got {output.shape}.{hint}")

    def _shape(self, batch_size: int, num_actions: int | None) -> tuple[int, ...]:
        return (batch_size,) if num_actions is None else (batch_size, num_actions)


@dataclass(frozen=True)
class TreeOutput:
    """A pytree, such as distribution parameters or an observation, as ``make(rng, batch_size)`` gives it."""

    make: Callable[[Key, int], PyTree]
    what: str
    note: str = ""
    """More about it, for the message when shapes differ."""

    def example(self, rng: Key, batch_size: int, num_actions: int | None = None) -> PyTree:
        """What ``make`` gives; for every action its own when ``num_actions`` is given."""
        if num_actions is None:
            return self.make(rng, batch_size)
        flat = self.make(rng, batch_size * num_actions)
        return jax.tree.map(lambda leaf: leaf.reshape(batch_size, num_actions, *leaf.shape[1:]), flat)

    def check(self, owner: str, output: Any, batch_size: int, num_actions: int | None = None) -> None:
        """Raise a ``TypeError`` that shows expected and found structure, types or shapes."""
        expected = jax.eval_shape(lambda key: self.example(key, batch_size, num_actions), jax.random.PRNGKey(0))
        wanted, found = jax.tree.structure(expected), jax.tree.structure(output)
        if wanted != found:
            raise TypeError(
                f"{owner}: func must return {self.what} with the structure {describe_structure(expected)}; got"
                f" {describe_structure(output)}." + _structure_hint(expected, output)
            )
        leaves = jax.tree.leaves(output)
        strangers = {type(leaf).__name__ for leaf in leaves if not isinstance(leaf, jax.ShapeDtypeStruct)}
        if strangers:
            raise TypeError(f"{owner}: the leaves of func's output must be JAX arrays; got {sorted(strangers)}.")
        self._check_leaves(owner, expected, output)

    def _check_leaves(self, owner: str, expected: PyTree, output: PyTree) -> None:
        differences = [
            f"{jax.tree_util.keystr(path) or 'output'}: {got.shape} {got.dtype} (expected {want.shape} {want.dtype})"
            for (path, want), got in zip(
                jax.tree_util.tree_flatten_with_path(expected)[0], jax.tree.leaves(output), strict=True
            )
            if got.shape != want.shape or _kind(got) != _kind(want)
        ]
        if differences:
            raise TypeError(
                f"{owner}: func must return {self.what}; these leaves differ: {'; '.join(differences)}.{self.note}"
            )


def _structure_hint(expected: PyTree, output: Any) -> str:
    if isinstance(output, PPONetworkOutput):
        return (
            " Networks that act and estimate values at once are for triax.algorithms.train_ppo and triax.agents.ppo; "
            f"here return {_sketch(expected)} alone."
        )
    if isinstance(output, jax.ShapeDtypeStruct) and isinstance(expected, dict):
        return f" Try return {_sketch(expected)}."
    return " Tuples, lists and dicts are told apart, and so are their keys."


def _sketch(tree: PyTree) -> str:
    """The structure as one would write it, with ``x`` for an array."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_sketch(part)}" for key, part in tree.items()) + "}"
    if isinstance(tree, tuple | list):
        return "(" + ", ".join(map(_sketch, tree)) + ("," if len(tree) == 1 else "") + ")"
    return "x"


def dist_params_output(proba_dist: BaseProbaDist) -> TreeOutput:
    """The declaration that a function returns the parameters of ``proba_dist``."""
    num_bins = getattr(proba_dist, "num_bins", None)
    note = "" if num_bins is None else f" num_bins is {num_bins}: change it, or the size of what func returns."
    return TreeOutput(proba_dist.example_params, "distribution parameters", note)


def _kind(leaf: Any) -> type:
    return jnp.floating if jnp.issubdtype(leaf.dtype, jnp.floating) else jnp.integer
