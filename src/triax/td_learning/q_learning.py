"""``QLearning``, ``DoubleQLearning`` and ``SoftQLearning``: off-policy TD learning of q-functions."""

from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from gymnasium.spaces import Discrete
from jaxtyping import Array, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.core.numbers import Checked, check_number
from triax.functions import is_stochastic
from triax.functions.raw_actions import action_adapter
from triax.learning.estimates import estimate_of
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction
from triax.td_learning.checks import check_q_functions, check_target_policy, require_discrete
from triax.td_learning.q_rule import QRule, all_actions, greedy_actions, next_dist_params, one_action


class QLearning(QRule):
    r"""Q-learning: the target is :math:`R_n + I_n \max_a q_\text{targ}(s', a)`.

    With actions that are not ``Discrete`` the maximum is replaced by the mode of ``pi_targ`` (DDPG).

    Source: Watkins 1989; Mnih et al. 2015; Lillicrap et al. 2015, arXiv:1509.02971.

    Args:
        q: the q-function to train.
        pi_targ: the policy whose mode picks the next action; needed unless actions are ``Discrete``.
        q_targ: the target function; default ``q`` itself.
        optimizer: an optax ``GradientTransformation``; default Adam with learning rate 1e-3.
        loss_function: ``(y_true, y_pred, w=None) -> scalar``; default ``huber``.
        policy_regularizer: subtracted from the target.

    Raises:
        TypeError: an argument is of another kind, or ``pi_targ`` is missing.
    """

    def __init__(
        self,
        q: Any,
        pi_targ: Any = None,
        q_targ: Any = None,
        optimizer: optax.GradientTransformation | None = None,
        loss_function: LossFunction | None = None,
        policy_regularizer: Regularizer | None = None,
    ) -> None:
        check_q_functions(self._name, q, q_targ)
        check_target_policy(self._name, q, pi_targ)
        self._pi_targ = None if isinstance(q.action_space, Discrete) else pi_targ
        super().__init__(q, q_targ, optimizer, loss_function, policy_regularizer)
        if self._pi_targ is not None:
            self._adapt = action_adapter(self._target, self._pi_targ, who=self._name)

    @property
    def pi_targ(self) -> Any:
        """The policy that picks the next action; ``None`` with ``Discrete`` actions."""
        return self._pi_targ

    def _functions(self) -> dict[str, Any]:
        functions = super()._functions()
        return functions if self._pi_targ is None else {**functions, "pi_targ": self._pi_targ}

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        weights = params["q_targ"], state["q_targ"]
        estimate = estimate_of(self._target)
        rng_pi, rng_q = random.split(rng)
        if self._pi_targ is None:
            output = all_actions(batch, "q_targ", self._target, weights, rng_q)
            choice = self._choice(params, state, rng_q, batch, output)
            return estimate.mix(estimate.following(output), choice)
        policy_weights = params["pi_targ"], state["pi_targ"]
        mode = self._pi_targ.proba_dist.mode(next_dist_params(batch, self._pi_targ, policy_weights, rng_pi))
        output = one_action(batch, self._target, weights, rng_q, self._adapt(rng_q, mode))
        return estimate.following(output)

    def _choice(
        self, params: dict, state: dict, rng: Key, batch: TransitionBatch, output: PyTree
    ) -> Float[Array, "batch n"]:
        """Weights of the next actions: the target function's own greedy ones."""
        return greedy_actions(self._target, output)


class DoubleQLearning(QLearning):
    r"""Double Q-learning: ``q`` picks the next action, ``q_targ`` evaluates it.

    .. math:: G = R_n + I_n\, q_\text{targ}(s', \arg\max_a q(s', a))

    With actions that are not ``Discrete``, the mode of ``pi_targ`` is evaluated by ``q_targ``. Arguments as in
    :class:`QLearning`.

    Source: van Hasselt, Guez & Silver 2015, arXiv:1509.06461, eq. 4.
    """

    def _choice(
        self, params: dict, state: dict, rng: Key, batch: TransitionBatch, output: PyTree
    ) -> Float[Array, "batch n"]:
        online = all_actions(batch, "q", self._trained, (params["q"], state["q"]), rng)
        return greedy_actions(self._trained, online)


class SoftQLearning(QRule):
    r"""Soft Q-learning: the next value is :math:`\tau \log \sum_a \exp(q_\text{targ}(s', a) / \tau)`.

    The log-sum-exp is over values in original units.

    Source: Haarnoja et al. 2017, arXiv:1702.08165, eq. 3.

    Args:
        q: the deterministic q-function to train, on ``Discrete`` actions.
        q_targ, optimizer, loss_function, policy_regularizer: as in :class:`Sarsa`.
        temperature: a plain positive attribute that may change without recompilation.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: ``temperature`` is not positive and finite, here or when it is assigned.
        NotImplementedError: actions are not ``Discrete``, or ``q`` is a ``StochasticQ``.
    """

    temperature: Checked[float] = Checked(partial(check_number, positive=True), "What values are divided by.")

    def __init__(
        self,
        q: Any,
        q_targ: Any = None,
        optimizer: optax.GradientTransformation | None = None,
        loss_function: LossFunction | None = None,
        policy_regularizer: Regularizer | None = None,
        temperature: float = 1.0,
    ) -> None:
        check_q_functions(self._name, q, q_targ)
        require_discrete(self._name, q)
        if is_stochastic(q):
            raise NotImplementedError(f"{self._name} is defined for deterministic q-functions; got a StochasticQ.")
        self.temperature = temperature
        super().__init__(q, q_targ, optimizer, loss_function, policy_regularizer)

    def _numbers(self) -> dict[str, Any]:
        return {"temperature": np.float32(self.temperature)}

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        output = all_actions(batch, "q_targ", self._target, (params["q_targ"], state["q_targ"]), rng)
        temperature = params["temperature"]
        values = estimate_of(self._target).values(output) / temperature
        return temperature * jax.scipy.special.logsumexp(values, axis=-1)
