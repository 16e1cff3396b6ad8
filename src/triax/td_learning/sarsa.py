"""``Sarsa`` and ``ExpectedSarsa``: on-policy TD learning of q-functions."""

from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.learning.estimates import estimate_of
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction
from triax.td_learning.checks import check_policy, check_q_functions, require_discrete
from triax.td_learning.q_rule import QRule, action_probabilities, all_actions, one_action


class Sarsa(QRule):
    r"""SARSA: the target is :math:`R_n + I_n\, q_\text{targ}(s', a')` with the action that was taken.

    A truncated episode ends with a state in which no action was taken (``logP_next`` is NaN): such transitions weigh
    nothing, and their TD error is 0.

    Source: Rummery & Niranjan 1994; Sutton & Barto 2018, section 6.4.

    Args:
        q: the q-function to train.
        q_targ: the target function; default ``q`` itself.
        optimizer: an optax ``GradientTransformation``; default Adam with learning rate 1e-3.
        loss_function: ``(y_true, y_pred, w=None) -> scalar``; default ``huber``.
        policy_regularizer: subtracted from the target.

    Raises:
        TypeError: an argument is of another kind.
    """

    _reads_next_action = True

    def __init__(
        self,
        q: Any,
        q_targ: Any = None,
        optimizer: optax.GradientTransformation | None = None,
        loss_function: LossFunction | None = None,
        policy_regularizer: Regularizer | None = None,
    ) -> None:
        check_q_functions(self._name, q, q_targ)
        super().__init__(q, q_targ, optimizer, loss_function, policy_regularizer)

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        rng_A, rng_q = random.split(rng)
        A_next = self._target.action_preprocessor(rng_A, batch.A_next)
        output = one_action(batch, self._target, (params["q_targ"], state["q_targ"]), rng_q, A_next)
        return estimate_of(self._target).following(output)

    def _is_known(self, batch: TransitionBatch) -> Bool[Array, " batch"]:
        return ~jnp.isnan(batch.logP_next) | (batch.In == 0)


class ExpectedSarsa(QRule):
    r"""Expected SARSA: the target is :math:`R_n + I_n \sum_a \pi(a \mid s')\, q_\text{targ}(s', a)`.

    The expectation is over values in original units; for distributional functions it is the mixture of distributions.

    Source: van Seijen et al. 2009; Sutton & Barto 2018, section 6.6.

    Args:
        q: the q-function to train, on ``Discrete`` actions.
        pi_targ: the policy of the expectation.
        q_targ, optimizer, loss_function, policy_regularizer: as in :class:`Sarsa`.

    Raises:
        TypeError: an argument is of another kind.
        NotImplementedError: actions are not ``Discrete``.
    """

    def __init__(
        self,
        q: Any,
        pi_targ: Any,
        q_targ: Any = None,
        optimizer: optax.GradientTransformation | None = None,
        loss_function: LossFunction | None = None,
        policy_regularizer: Regularizer | None = None,
    ) -> None:
        check_q_functions(self._name, q, q_targ)
        require_discrete(self._name, q)
        check_policy(self._name, "pi_targ", pi_targ, q)
        self._pi_targ = pi_targ
        super().__init__(q, q_targ, optimizer, loss_function, policy_regularizer)

    @property
    def pi_targ(self) -> Any:
        """The policy of the expectation."""
        return self._pi_targ

    def _functions(self) -> dict[str, Any]:
        return {**super()._functions(), "pi_targ": self._pi_targ}

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        rng_pi, rng_q = random.split(rng)
        policy_weights, weights = ((params[name], state[name]) for name in ("pi_targ", "q_targ"))
        probabilities = action_probabilities(batch, self._pi_targ, policy_weights, rng_pi)
        output = all_actions(batch, "q_targ", self._target, weights, rng_q)
        estimate = estimate_of(self._target)
        return estimate.mix(estimate.following(output), probabilities)
