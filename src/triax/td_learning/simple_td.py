"""``SimpleTD``: temporal differences of a state-value function."""

from typing import Any

import optax
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions import is_vfunction
from triax.learning.estimates import estimate_of
from triax.learning.evaluation import Evaluated, evaluate_at
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

    def _target_at(self, params: dict, state: dict) -> tuple[str, Any, Weights]:
        return "v_targ", self._target, (params["v_targ"], state["v_targ"])

    def _predict(self, name: str, f: Any, weights: Weights, rng: Key, batch: TransitionBatch) -> Evaluated:
        return evaluate_at(batch, f, weights, rng, name=name)

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        weights = params["v_targ"], state["v_targ"]
        output = evaluate_at(batch, self._target, weights, rng, name="v_targ", at="S_next").output
        return estimate_of(self._target).following(output)
