"""What the rules for q-functions share."""

from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, PyTree

from triax.core.keys import Key
from triax.functions.raw_actions import action_adapter
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction, TDRule


class QRule(TDRule):
    """A TD rule that trains ``q`` towards a target with ``q_targ`` in it."""

    def __init__(
        self,
        q: Any,
        q_targ: Any,
        optimizer: optax.GradientTransformation | None,
        loss_function: LossFunction | None,
        policy_regularizer: Regularizer | None,
        *,
        policies: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(q, q_targ, optimizer, loss_function, policy_regularizer)
        self._adapters = [action_adapter(self._target, pi, who=self._name) for pi in policies]

    @property
    def q(self) -> Any:
        """The function in training."""
        return self._trained

    @property
    def q_targ(self) -> Any:
        """The target function (a list for the clipped rules)."""
        return self._target

    def _functions(self) -> dict[str, Any]:
        return {"q": self._trained, "q_targ": self._target}

    def _target_weights(self, params: dict, state: dict) -> tuple[Any, Any]:
        return params["q_targ"], state["q_targ"]

    def _predict(self, f: Any, weights: tuple[Any, Any], rng: Key, batch: TransitionBatch, training: bool) -> tuple:
        S, A = f.observation_preprocessor(rng, batch.S), f.action_preprocessor(rng, batch.A)
        return f.function_type1(*weights, rng, S, A, training)

    def _all_actions(self, f: Any, weights: tuple[Any, Any], rng: Key, S: Any) -> PyTree:
        """The output of ``f`` for all actions in clean states ``S``, in evaluation mode."""
        return f.function_type2(*weights, rng, f.observation_preprocessor(rng, S), False)[0]

    def _one_action(self, f: Any, weights: tuple[Any, Any], rng: Key, S: Any, A: PyTree) -> PyTree:
        """The output of ``f`` for raw actions ``A`` in clean states ``S``, in evaluation mode."""
        return f.function_type1(*weights, rng, f.observation_preprocessor(rng, S), A, False)[0]


def unknown_next_action(batch: TransitionBatch) -> Array:
    """Rows that bootstrap from a next action which nobody took: the end of a truncated episode."""
    return jnp.isnan(batch.logP_next) & (batch.In > 0)
