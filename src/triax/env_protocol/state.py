"""The state of a JAX environment, and the one border where its structure and dtypes are settled."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from triax.core.tree_differences import describe_difference


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """One environment after a reset or a step, without batch axes; vmapped, each leaf gains one.

    ``obs``
        The observation to act on: a pytree of arrays.
    ``reward``
        Of the step that led here, float32: a scalar, or a pytree of scalars. 0 after a reset.
    ``terminated``, ``truncated``
        bool: the environment ended the episode (no bootstrap) | a time limit cut it (bootstrap from
        ``final_obs``). Never both.
    ``final_obs``
        The observation that the step led to. It is ``obs``, save where an automatic reset put the next
        episode's first observation there.
    ``info``
        A dict that the environment carries and shows; an automatic reset resets it.
    ``metrics``
        A dict of what the step measured; an automatic reset leaves it.
    ``inner``
        The environment's own: ``step`` of an environment reads this, ``obs`` and ``info``, nothing else.

    Write environments with :meth:`first` and :meth:`next`, which settle dtypes.
    """

    obs: PyTree
    reward: PyTree
    terminated: Any
    truncated: Any
    final_obs: PyTree
    info: Any
    metrics: Any
    inner: PyTree = ()

    @property
    def done(self) -> Any:
        """bool: the episode is over, for whichever reason."""
        return self.terminated | self.truncated

    def replace(self, **fields: Any) -> "State":
        """The state with some fields replaced. ``done`` is none: replace ``terminated`` or ``truncated``."""
        if "done" in fields:
            raise TypeError(
                "State.replace: done is terminated | truncated and cannot be set. Try terminated=... or truncated=..."
            )
        return dataclasses.replace(self, **fields)

    @classmethod
    def first(
        cls,
        obs: PyTree,
        inner: PyTree = (),
        *,
        reward: PyTree = 0.0,
        info: dict[str, Any] | None = None,
        metrics: dict[str, Any] | None = None,
    ) -> "State":
        """The state after a reset. Its structure, shapes and dtypes bind every state after it.

        Leaves may be arrays or numbers; those of ``reward``, one or a pytree of them, become float32.
        """
        no, obs = jnp.zeros((), jnp.bool_), canonical(obs)
        return cls(
            obs=obs,
            reward=jax.tree.map(lambda r: jnp.asarray(r).astype(jnp.float32), reward),
            terminated=no,
            truncated=no,
            final_obs=obs,
            info=canonical({} if info is None else info),
            metrics=canonical({} if metrics is None else metrics),
            inner=canonical(inner),
        )

    def next(
        self,
        obs: PyTree,
        reward: PyTree,
        terminated: Any,
        inner: PyTree = (),
        *,
        truncated: Any = False,
        info: dict[str, Any] | None = None,
        metrics: dict[str, Any] | None = None,
    ) -> "State":
        """The state after a step from this one; ``info`` and ``metrics`` of ``None`` stay as they are.

        An episode that is both terminated and truncated is terminated. Raises ``ValueError`` that names the
        leaves where structure or shape differs from this state, or that would not fit into its dtype.
        """
        terminated = jnp.asarray(terminated).astype(jnp.bool_)
        following = State(
            obs=obs,
            reward=reward,
            terminated=terminated,
            truncated=jnp.asarray(truncated).astype(jnp.bool_) & ~terminated,
            final_obs=obs,
            info=self.info if info is None else info,
            metrics=self.metrics if metrics is None else metrics,
            inner=inner,
        )
        return conform(self, following)


def canonical(tree: PyTree) -> PyTree:
    """Every leaf as a JAX array of a definite dtype: weak types, as of Python numbers, compile twice."""
    return jax.tree.map(_strong, tree)


def conform(like: PyTree, tree: PyTree) -> PyTree:
    """``tree`` with the dtypes of ``like``, which a reset or an earlier step gave.

    Raises ``ValueError`` that names the leaves, where structure or shape differ, or where the dtype of
    ``like`` is of a lesser kind, as int is to float.
    """
    if jax.tree.structure(like) == jax.tree.structure(tree):
        tree = jax.tree.map(_cast, like, tree)
    difference = describe_difference(like, tree, "state")
    if difference is not None:
        raise ValueError(
            "step: must return a state of the structure, shapes and dtypes that reset returns; "
            f"{difference}\n{_hint(like, tree)}"
        )
    return tree


def _hint(like: PyTree, tree: PyTree) -> str:
    """Which of both is wrong is not known here, save where reset's numbers are too narrow for step's."""
    if jax.tree.structure(like) != jax.tree.structure(tree):
        return "Change reset or step, so that both return the same leaves."
    pairs = zip(jax.tree.leaves(like), jax.tree.leaves(tree), strict=True)
    if all(before.shape == after.shape for before, after in pairs):
        return "Try a wider dtype in reset, such as 0.0 instead of 0, or a cast in step."
    return "Change reset or step, whichever has the wrong shape, so that both agree."


def _strong(leaf: Any) -> jax.Array:
    array = jnp.asarray(leaf)
    return jax.lax.convert_element_type(array, array.dtype)


def _cast(like: Any, leaf: Any) -> jax.Array:
    """``leaf`` in the dtype of ``like``, unless that is of a lesser kind."""
    array = _strong(leaf)
    fits = _kind(array.dtype) <= _kind(like.dtype) if array.dtype != like.dtype else False
    return array.astype(like.dtype) if fits else array


_KINDS = (jnp.bool_, jnp.integer, jnp.floating, jnp.complexfloating)


def _kind(dtype: Any) -> float:
    """The place among bool, int, float, complex; NaN, which compares with nothing, for PRNG keys."""
    return next((place for place, kind in enumerate(_KINDS) if jnp.issubdtype(dtype, kind)), float("nan"))
