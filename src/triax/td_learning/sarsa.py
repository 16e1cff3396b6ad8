"""``Sarsa`` and ``ExpectedSarsa``: on-policy TD learning of q-functions."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from triax.core.keys import Key
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction
from triax.td_learning.checks import check_policy, check_q_functions, require_discrete
from triax.td_learning.q_rule import QRule, unknown_next_action


class Sarsa(QRule):
    r"""SARSA: the target is :math:`R_n + I_n\, q_\text{targ}(s', a')` with the action that was taken.

    A truncated episode ends with a state in which no action was taken: such transitions weigh nothing.

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

    _needs_next_action = True

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
        A_next = self._target.action_preprocessor(rng, batch.A_next)
        weights = params["q_targ"], state["q_targ"]
        return self._target_estimate.single(self._one_action(self._target, weights, rng, batch.S_next, A_next))

    def _sample_weights(self, batch: TransitionBatch) -> Float[Array, " batch"]:
        return jnp.where(unknown_next_action(batch), 0.0, super()._sample_weights(batch))


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
        check_policy(self._name, "pi_targ", pi_targ)
        self.pi_targ = pi_targ
        super().__init__(q, q_targ, optimizer, loss_function, policy_regularizer, policies=(pi_targ,))

    def _functions(self) -> dict[str, Any]:
        return {**super()._functions(), "pi_targ": self.pi_targ}

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        rng_pi, rng_q = jax.random.split(rng)
        S_next = self.pi_targ.observation_preprocessor(rng_pi, batch.S_next)
        dist_params, _ = self.pi_targ.function(params["pi_targ"], state["pi_targ"], rng_pi, S_next, False)
        probabilities = self.pi_targ.proba_dist.mean(dist_params)
        weights = params["q_targ"], state["q_targ"]
        output = self._all_actions(self._target, weights, rng_q, batch.S_next)
        return self._target_estimate.mix(output, probabilities)
