"""Several critics of one architecture, evaluated together; and the memories of actors and critics along sequences."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from triax.agents.off_policy import Factory, Weights, fresh_weights
from triax.core import random
from triax.core.keys import Key
from triax.functions import Q
from triax.functions.lift import Carry
from triax.functions.sequences import unroll
from triax.learning import LossOutput
from triax.learning.evaluation import Alongside, Evaluated, Place, evaluate_at, unfolded
from triax.networks.unrolling import fold, unfold
from triax.reward_tracing import TransitionBatch

CRITIC_METRICS = ("loss", "td_error", "q", "grads_norm")
"""Of a step of the critics."""


class Critics:
    """``count`` q-functions; their weights have a leading axis ``[count]``, memories an axis after the batch.

    Args:
        network: makes one of them; called ``count`` times.
        q: one of them, which says what goes in and what comes out.
        count: how many.
    """

    def __init__(self, network: Factory, q: Q, count: int) -> None:
        self._network, self._q, self.count = network, q, count

    @property
    def has_memory(self) -> bool:
        """Whether they remember."""
        return self._q.has_memory

    def init(self, key: Key) -> Weights:
        """New weights."""
        return jax.vmap(lambda key: fresh_weights(self._network, key))(random.split(key, self.count))

    def initial_carry(self, weights: Weights, key: Key, batch_size: int) -> Carry:
        """The memories at the start of an episode, leaves ``[batch, count, ...]``."""
        fresh = lambda weights: self._q._lifted.initial_carry(*weights, key, batch_size)  # noqa: E731
        return jax.vmap(fresh, out_axes=1)(weights)

    def remember(self, weights: Weights, carry: Carry, key: Key, observation: PyTree, action: PyTree) -> Carry:
        """The memories after one step, in evaluation mode."""
        if not self.has_memory:
            return carry
        S = self._q.observation_preprocessor(key, observation)
        inputs = (S, self._q.action_preprocessor(key, action))
        along = jax.tree.map(lambda leaf: leaf[None], inputs)
        resets = jnp.zeros((1, jax.tree.leaves(S)[0].shape[0]), bool)
        after = lambda w, c: unroll(self._q, w, key, c, resets, along).carry  # noqa: E731
        return jax.vmap(after, in_axes=(0, 1), out_axes=1)(weights, carry)

    def evaluate(
        self,
        batch: TransitionBatch,
        weights: Weights,
        key: Key,
        *,
        role: str,
        at: Place = "S",
        actions: PyTree = None,
        is_training: bool = False,
    ) -> Evaluated:
        """What :func:`~triax.learning.evaluation.evaluate_at` gives, with a leading axis ``[count]``."""

        def one(weights: Weights, carry: Carry) -> Evaluated:
            own = with_carries(batch, {role: carry})
            return evaluate_at(own, self._q, weights, key, name=role, at=at, actions=actions, is_training=is_training)

        return self._each(one, batch, weights, role)

    def of_taken(self, batch: TransitionBatch, weights: Weights, key: Key, *, role: str) -> Evaluated:
        """The values ``[count, batch]`` of the actions of the batch, in training mode."""
        A = self._q.action_preprocessor(key, batch.A)
        return self.evaluate(batch, weights, key, role=role, actions=A, is_training=True)

    def of_others(
        self, batch: TransitionBatch, weights: Weights, key: Key, *, role: str, actions: PyTree
    ) -> Float[Array, "count batch ..."]:
        """The values of other preprocessed actions than those taken, or of all; memories are of those taken."""
        if actions is None or not self.has_memory:
            return self.evaluate(batch, weights, key, role=role, actions=actions).output
        return self._each(lambda w, c: self._instead(batch, w, c, key, actions), batch, weights, role)

    def _instead(self, batch: TransitionBatch, weights: Weights, carry: Carry, key: Key, actions: PyTree) -> Array:
        resets = batch.extra_info.resets
        S, A = self._q.observation_preprocessor(key, batch.S), self._q.action_preprocessor(key, batch.A)
        taken, instead = unfold((S, A), resets), jax.tree.map(lambda leaf: leaf[None], (S, actions))

        def step(carry: Carry, now: tuple) -> tuple[Carry, Carry]:
            reset, inputs = now
            one = jax.tree.map(lambda leaf: leaf[None], inputs)
            return unroll(self._q, weights, key, carry, reset[None], one).carry, carry

        carries = jax.lax.stop_gradient(jax.lax.scan(step, carry, (resets, taken))[1])
        return unroll(self._q, weights, key, fold(carries), fold(resets)[None], instead).output[0]

    def after_burn_in(self, batch: TransitionBatch, weights: Weights, key: Key, *, role: str) -> Carry:
        """The memories at the first row."""
        return self._each(
            lambda w, c: after_burn_in(with_carries(batch, {role: c}), self._q, w, key, role=role),
            batch,
            weights,
            role,
            out_axes=1,
        )

    def _each(
        self,
        one: Callable[[Weights, Carry], Any],
        batch: TransitionBatch,
        weights: Weights,
        role: str,
        out_axes: int = 0,
    ) -> Any:
        along, carry = batch.extra_info, ()
        if isinstance(along, Alongside) and self.has_memory:  # of as many critics as there are weights of
            count = jax.tree.leaves(weights)[0].shape[0]
            carry = jax.tree.map(lambda leaf: leaf[:, :count], along.carries[role])
        return jax.vmap(one, in_axes=(0, 1), out_axes=out_axes)(weights, carry)


# ------------------------------------------------------------------ memories of a batch


def with_carries(batch: TransitionBatch, carries: dict[str, Carry]) -> TransitionBatch:
    """The batch with the memories of functions, by their roles; a flat batch as it is."""
    along = batch.extra_info
    if not isinstance(along, Alongside):
        return batch
    batch = batch.copy()
    batch.extra_info = along._replace(carries={**along.carries, **carries})
    return batch


def without_burn_in(batch: TransitionBatch) -> TransitionBatch:
    """The batch once its memories are up to date."""
    along = batch.extra_info
    if not isinstance(along, Alongside):
        return batch
    batch = batch.copy()
    batch.extra_info = along._replace(burn_in=None)
    return batch


def after_burn_in(batch: TransitionBatch, f: Any, weights: Weights, key: Key, *, role: str) -> Carry:
    """What ``f`` remembers at the first row, in evaluation mode; no gradient flows into it."""
    along = batch.extra_info
    if not (isinstance(along, Alongside) and f.has_memory):
        return ()
    carry = along.carries[role]
    if along.burn_in is not None:
        S, A, resets = along.burn_in
        rows: tuple[PyTree, ...] = (f.observation_preprocessor(key, fold(S)),)
        if f.takes_action_as_input:
            rows = (*rows, f.action_preprocessor(key, fold(A)))
        carry = unroll(f, weights, key, carry, resets, unfold(rows, resets)).carry
    return jax.lax.stop_gradient(carry)


def squared_error_loss(
    batch: TransitionBatch, online: Evaluated, target: Float[Array, " batch"]
) -> tuple[Float[Array, ""], LossOutput]:
    """Half the squared errors of all critics, summed over them; errors per row are means of their sizes."""
    error = target - online.output
    loss = 0.5 * jnp.sum(jnp.mean(batch.W * jnp.square(error), axis=-1)) + jnp.sum(online.loss)
    metrics = {"loss": loss, "td_error": jnp.mean(batch.W * error), "q": jnp.mean(online.output)}
    size = jnp.mean(jnp.abs(error), axis=0)
    return loss, LossOutput(online.function_state, metrics, unfolded(size, batch))
