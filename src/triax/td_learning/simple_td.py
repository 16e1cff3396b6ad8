"""``SimpleTD``: temporal differences of a state-value function."""

from typing import Any

import jax
import optax
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions import is_vfunction
from triax.learning.estimates import estimate_of
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction, TDRule, Weights
from triax.td_learning.checks import check_target, check_trained


class SimpleTD(TDRule):
    r"""TD learning of ``v``: the target is :math:`R_n + I_n\, v_\text{targ}(s')` (Sutton & Barto 2018, section 6.1).

    Args:
        v: the ``V`` or ``StochasticV`` to train.
        v_targ: the target function; default ``v`` itself.
        optimizer: an optax ``GradientTransformation``; default Adam with learning rate 1e-3.
        loss_function: ``(y_true, y_pred, w=None) -> scalar``; default ``huber``.
        policy_regularizer: subtracted from the target.

    Raises:
        TypeError: an argument is of another kind.
    """

    def __init__(
        self,
        v: Any,
        v_targ: Any = None,
        optimizer: optax.GradientTransformation | None = None,
        loss_function: LossFunction | None = None,
        policy_regularizer: Regularizer | None = None,
    ) -> None:
        check_trained(self._name, "v", v, is_vfunction, "a V or StochasticV")
        if v_targ is not None:
            check_target(self._name, "v_targ", v_targ, is_vfunction, "a V or StochasticV", trained=v)
        super().__init__(v, v_targ, optimizer, loss_function, policy_regularizer)

    @property
    def v(self) -> Any:
        """The function in training."""
        return self._trained

    @property
    def v_targ(self) -> Any:
        """The target function."""
        return self._target

    def _functions(self) -> dict[str, Any]:
        return {"v": self._trained, "v_targ": self._target}

    def _target_at(self, params: dict, state: dict) -> tuple[Any, Weights]:
        return self._target, (params["v_targ"], state["v_targ"])

    def _predict(self, f: Any, weights: Weights, rng: Key, batch: TransitionBatch, training: bool) -> tuple:
        rng_S, rng_v = jax.random.split(rng)
        return f.function(*weights, rng_v, f.observation_preprocessor(rng_S, batch.S), training)

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        rng_S, rng_v = jax.random.split(rng)
        S_next = self._target.observation_preprocessor(rng_S, batch.S_next)
        output, _ = self._target.function(params["v_targ"], state["v_targ"], rng_v, S_next, False)
        return estimate_of(self._target).following(output)
