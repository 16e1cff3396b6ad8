"""``QLearning``, ``DoubleQLearning`` and ``SoftQLearning``: off-policy TD learning of q-functions."""

from typing import Any

import jax
import numpy as np
import optax
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions import is_stochastic
from triax.learning.estimates import estimate_of, greedy
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction
from triax.td_learning.checks import check_q_functions, check_target_policy, require_discrete
from triax.td_learning.q_rule import QRule


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
        self.pi_targ: Any = None if isinstance(q.action_space, Discrete) else pi_targ
        policies = () if self.pi_targ is None else (self.pi_targ,)
        super().__init__(q, q_targ, optimizer, loss_function, policy_regularizer, policies=policies)

    def _functions(self) -> dict[str, Any]:
        functions = super()._functions()
        return functions if self.pi_targ is None else {**functions, "pi_targ": self.pi_targ}

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        if self.pi_targ is not None:
            return self._at_mode(params, state, rng, batch)
        weights = params["q_targ"], state["q_targ"]
        output = self._all_actions(self._target, weights, rng, batch.S_next)
        return self._target_estimate.mix(output, self._choice(params, state, rng, batch, output))

    def _choice(self, params: dict, state: dict, rng: Key, batch: TransitionBatch, output: PyTree) -> Any:
        """Weights of the next actions: the target function's own greedy ones."""
        return greedy(estimate_of(self._target).values(output))

    def _at_mode(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        rng_pi, rng_q = jax.random.split(rng)
        S_next = self.pi_targ.observation_preprocessor(rng_pi, batch.S_next)
        mode = self.pi_targ.mode_func(params["pi_targ"], state["pi_targ"], rng_pi, S_next)
        weights = params["q_targ"], state["q_targ"]
        output = self._one_action(self._target, weights, rng_q, batch.S_next, self._adapters[0](rng_q, mode))
        return self._target_estimate.single(output)


class DoubleQLearning(QLearning):
    r"""Double Q-learning: ``q`` picks the next action, ``q_targ`` evaluates it.

    .. math:: G = R_n + I_n\, q_\text{targ}(s', \arg\max_a q(s', a))

    With actions that are not ``Discrete``, the mode of ``pi_targ`` is evaluated by ``q_targ``. Arguments as in
    :class:`QLearning`.

    Source: van Hasselt, Guez & Silver 2015, arXiv:1509.06461, eq. 4.
    """

    def _choice(self, params: dict, state: dict, rng: Key, batch: TransitionBatch, output: PyTree) -> Any:
        online = self._all_actions(self._trained, (params["q"], state["q"]), rng, batch.S_next)
        return greedy(estimate_of(self._trained).values(online))


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
        NotImplementedError: actions are not ``Discrete``, or ``q`` is a ``StochasticQ``.
    """

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

    @property
    def target_params(self) -> dict[str, Any]:
        """The parameters that the target reads, ``temperature`` among them."""
        return {**super().target_params, **self._numbers()}

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        output = self._all_actions(self._target, (params["q_targ"], state["q_targ"]), rng, batch.S_next)
        temperature = params["temperature"]
        values = estimate_of(self._target).values(output) / temperature
        return temperature * jax.scipy.special.logsumexp(values, axis=-1)
