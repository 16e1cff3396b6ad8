"""``ClippedDoubleQLearning`` and its soft form: the smallest of several targets (TD3, SAC)."""

import warnings
from typing import Any

import jax
import optax
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions import is_qfunction
from triax.functions.raw_actions import action_adapter
from triax.learning.estimates import estimate_of, greedy
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction
from triax.td_learning.checks import check_function, check_list, check_policy, check_q_functions
from triax.td_learning.q_rule import QRule


class ClippedDoubleQLearning(QRule):
    r"""Clipped double Q-learning: the next value is :math:`\min_{i,j} q_j(s', a_i)`.

    With ``Discrete`` actions :math:`a_i` is the greedy action of :math:`q_i`, else the mode of :math:`\pi_i`. For
    distributional functions the pair with the smallest mean gives the whole distribution.

    Source: Fujimoto, van Hoof & Meger 2018, arXiv:1802.09477, eq. 10.

    Args:
        q: the q-function to train.
        pi_targ_list: the target policies; needed unless actions are ``Discrete``.
        q_targ_list: the target q-functions; each runs as its own network.
        optimizer, loss_function, policy_regularizer: as in :class:`QLearning`.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: a list is empty, or there are fewer than two candidates to take the minimum of.
    """

    _ignores_discrete_policies = True

    def __init__(
        self,
        q: Any,
        pi_targ_list: Any = None,
        q_targ_list: Any = None,
        optimizer: optax.GradientTransformation | None = None,
        loss_function: LossFunction | None = None,
        policy_regularizer: Regularizer | None = None,
    ) -> None:
        who = self._name
        check_q_functions(who, q, None)
        check_list(who, "q_targ_list", q_targ_list, lambda f: self._check_target(q, f))
        self.q_targ_list = list(q_targ_list)
        self.pi_targ_list = self._checked_policies(q, pi_targ_list)
        if len(self.q_targ_list) * max(1, len(self.pi_targ_list)) < 2:
            raise ValueError(
                f"{who}: there must be at least two candidates to take the minimum of;"
                f" got {len(self.q_targ_list)} in q_targ_list and {len(self.pi_targ_list)} in pi_targ_list."
            )
        super().__init__(q, self.q_targ_list, optimizer, loss_function, policy_regularizer)
        self._pair_adapters = [[action_adapter(f, pi, who=who) for f in self.q_targ_list] for pi in self.pi_targ_list]

    def _check_target(self, q: Any, f: Any) -> None:
        if f is None:
            raise TypeError(f"{self._name}: q_targ_list must hold q-functions; got None.")
        check_function(self._name, "q_targ_list", f, is_qfunction, "q-functions", like=q)

    def _checked_policies(self, q: Any, pi_targ_list: Any) -> list[Any]:
        if isinstance(q.action_space, Discrete) and self._ignores_discrete_policies:
            if pi_targ_list is not None:
                warnings.warn(
                    f"{self._name}: pi_targ_list is ignored: with Discrete actions the next action is an argmax.",
                    stacklevel=4,
                )
            return []
        check_list(self._name, "pi_targ_list", pi_targ_list, lambda pi: check_policy(self._name, "pi_targ_list", pi))
        return list(pi_targ_list)

    def _functions(self) -> dict[str, Any]:
        functions = {"q": self._trained, "q_targ": self.q_targ_list}
        return {**functions, "pi_targ": self.pi_targ_list} if self.pi_targ_list else functions

    def _target_weights(self, params: dict, state: dict) -> tuple[Any, Any]:
        return params["q_targ"][0], state["q_targ"][0]

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        targets = list(zip(self.q_targ_list, params["q_targ"], state["q_targ"], strict=True))
        if isinstance(self._trained.action_space, Discrete):
            outputs = [self._all_actions(f, (p, s), rng, batch.S_next) for f, p, s in targets]
            choices = self._discrete_choices(params, state, rng, batch, outputs)
            candidates = [self._target_estimate.mix(out, choice) for choice in choices for out in outputs]
            return self._target_estimate.smallest(candidates)
        candidates = []
        for i, X in enumerate(self._next_actions(params, state, rng, batch)):
            for j, (f, p, s) in enumerate(targets):
                A = self._pair_adapters[i][j](rng, X)
                candidates.append(self._target_estimate.single(self._one_action(f, (p, s), rng, batch.S_next, A)))
        return self._target_estimate.smallest(candidates)

    def _discrete_choices(
        self, params: dict, state: dict, rng: Key, batch: TransitionBatch, outputs: list[PyTree]
    ) -> list[Any]:
        """For each rule of picking actions the weights ``[batch, n]``."""
        return [greedy(estimate_of(f).values(out)) for f, out in zip(self.q_targ_list, outputs, strict=True)]

    def _next_actions(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> list[PyTree]:
        """Raw next actions, one batch of them for each policy."""
        return [
            self._pick(pi, p, s, key, pi.observation_preprocessor(key, batch.S_next))
            for pi, p, s, key in self._policies(params, state, rng)
        ]

    def _policies(self, params: dict, state: dict, rng: Key) -> list[tuple]:
        keys = jax.random.split(rng, len(self.pi_targ_list))
        return list(zip(self.pi_targ_list, params["pi_targ"], state["pi_targ"], keys, strict=True))

    def _pick(self, pi: Any, params: Any, state: Any, rng: Key, S_next: PyTree) -> PyTree:
        return pi.mode_func(params, state, rng, S_next)


class SoftClippedDoubleQLearning(ClippedDoubleQLearning):
    r"""The soft form: :math:`a_i` is *sampled* from :math:`\pi_i`.

    With ``Discrete`` actions the sample is replaced by its exact expectation
    :math:`\min_{i,j} \sum_a \pi_i(a \mid s')\, q_j(s', a)`; policies are needed then too.
    The entropy bonus of SAC comes with ``policy_regularizer``. Arguments as in :class:`ClippedDoubleQLearning`.

    Source: Haarnoja et al. 2018, arXiv:1812.05905; Christodoulou 2019, arXiv:1910.07207 for discrete actions.
    """

    _ignores_discrete_policies = False

    def _discrete_choices(
        self, params: dict, state: dict, rng: Key, batch: TransitionBatch, outputs: list[PyTree]
    ) -> list[Any]:
        choices = []
        for pi, p, s, key in self._policies(params, state, rng):
            S_next = pi.observation_preprocessor(key, batch.S_next)
            choices.append(pi.proba_dist.mean(pi.function(p, s, key, S_next, False)[0]))
        return choices

    def _pick(self, pi: Any, params: Any, state: Any, rng: Key, S_next: PyTree) -> PyTree:
        return pi.sample_func(params, state, rng, S_next)[0]
