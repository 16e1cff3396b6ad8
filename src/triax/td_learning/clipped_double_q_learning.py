"""``ClippedDoubleQLearning`` and its soft form: the smallest of several targets (TD3, SAC)."""

from typing import Any

import optax
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.core import random
from triax.core.keys import Key
from triax.core.user_warnings import warn_user
from triax.functions import is_qfunction
from triax.functions.evaluate import flatten_actions
from triax.functions.raw_actions import action_adapter
from triax.learning.estimates import estimate_of
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import LossFunction, Weights
from triax.td_learning.checks import check_list, check_policy, check_target, check_trained
from triax.td_learning.q_rule import (
    QRule,
    action_probabilities,
    all_actions,
    greedy_actions,
    next_dist_params,
    one_action,
)


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
        ValueError: a list is empty, or there are fewer than two candidates to take the minimum of (two ``q_targ``
            with ``Discrete`` actions).
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
        check_trained(self._name, "q", q, is_qfunction, "a q-function")
        check_list(
            self._name,
            "q_targ_list",
            q_targ_list,
            lambda f: check_target(self._name, "q_targ_list", f, is_qfunction, "q-functions", trained=q),
        )
        self._is_discrete = isinstance(q.action_space, Discrete)
        if self._is_discrete and len(q_targ_list) < 2:
            raise ValueError(f"{self._name}: q_targ_list must hold at least two to take the minimum of; got 1.")
        self._policies = self._checked_policies(q, pi_targ_list)
        if not self._is_discrete and len(q_targ_list) * len(self._policies) < 2:
            raise ValueError(
                f"{self._name}: there must be at least two pairs to take the minimum of; got 1 function in q_targ_list"
                " and 1 policy in pi_targ_list."
            )
        super().__init__(q, list(q_targ_list), optimizer, loss_function, policy_regularizer)
        if not self._is_discrete:
            self._adapters = [[action_adapter(f, pi, who=self._name) for f in q_targ_list] for pi in self._policies]

    def _checked_policies(self, q: Any, pi_targ_list: Any) -> list[Any]:
        if self._is_discrete and self._ignores_discrete_policies:
            if pi_targ_list is not None:
                warn_user(f"{self._name}: pi_targ_list is ignored: with Discrete actions the next action is an argmax.")
            return []
        check_list(self._name, "pi_targ_list", pi_targ_list, lambda pi: check_policy(self._name, "pi_targ_list", pi, q))
        return list(pi_targ_list)

    @property
    def q_targ_list(self) -> list[Any]:
        """The target functions."""
        return list(self._target)

    @property
    def pi_targ_list(self) -> list[Any]:
        """The target policies; empty where they are ignored."""
        return list(self._policies)

    def _functions(self) -> dict[str, Any]:
        functions = super()._functions()
        return {**functions, "pi_targ": self._policies} if self._policies else functions

    def _target_at(self, params: dict, state: dict) -> tuple[str, Any, Weights]:
        return "q_targ", self._target[0], (params["q_targ"][0], state["q_targ"][0])

    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        candidates_of = self._discrete_candidates if self._is_discrete else self._candidates
        return self._estimate.smallest(candidates_of(params, state, rng, batch))

    def _targets(self, params: dict, state: dict) -> list[tuple[Any, Weights]]:
        return [(f, (p, s)) for f, p, s in zip(self._target, params["q_targ"], state["q_targ"], strict=True)]

    def _policies_with_keys(self, params: dict, state: dict, rng: Key) -> list[tuple[Any, Weights, Key]]:
        keys = random.split(rng, len(self._policies))
        columns = self._policies, params["pi_targ"], state["pi_targ"], keys
        return [(pi, (p, s), key) for pi, p, s, key in zip(*columns, strict=True)]

    def _outputs(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> list[tuple[Any, PyTree]]:
        """Each target function with its output for all (``Discrete``) actions."""
        return [(f, all_actions(batch, "q_targ", f, weights, rng)) for f, weights in self._targets(params, state)]

    def _discrete_candidates(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> list[PyTree]:
        outputs = self._outputs(params, state, rng, batch)
        choices = [greedy_actions(f, output) for f, output in outputs]
        following = [estimate_of(f).following(output) for f, output in outputs]
        return [self._estimate.mix(part, choice) for choice in choices for part in following]

    def _candidates(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> list[PyTree]:
        candidates = []
        for i, (pi, policy_weights, key) in enumerate(self._policies_with_keys(params, state, rng)):
            rng_pi, rng_pick, rng_q = random.split(key, 3)
            X = self._pick(pi.proba_dist, next_dist_params(batch, pi, policy_weights, rng_pi), rng_pick)
            for j, (f, weights) in enumerate(self._targets(params, state)):
                A = self._adapters[i][j](rng_q, X)
                candidates.append(estimate_of(f).following(one_action(batch, f, weights, rng_q, A)))
        return candidates

    def _pick(self, proba_dist: Any, dist_params: PyTree, rng: Key) -> PyTree:
        """Raw next actions of one policy."""
        return proba_dist.mode(dist_params)


class SoftClippedDoubleQLearning(ClippedDoubleQLearning):
    r"""The soft form: :math:`a_i` is *sampled* from :math:`\pi_i`.

    With ``Discrete`` actions the sample is replaced by the expectation over it,
    :math:`\min_i \sum_a \pi_i(a \mid s') \min_j q_j(s', a)`; policies are needed then too.
    The entropy bonus of SAC comes with ``policy_regularizer``. Arguments as in :class:`ClippedDoubleQLearning`.

    Source: Haarnoja et al. 2018, arXiv:1812.05905; Christodoulou 2019, arXiv:1910.07207, for discrete actions.
    """

    _ignores_discrete_policies = False

    def _discrete_candidates(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> list[PyTree]:
        outputs = self._outputs(params, state, rng, batch)
        following = [estimate_of(f).following(output) for f, output in outputs]
        smallest = flatten_actions(self._estimate.smallest)(following)
        return [
            self._estimate.mix(smallest, action_probabilities(batch, pi, weights, key))
            for pi, weights, key in self._policies_with_keys(params, state, rng)
        ]

    def _pick(self, proba_dist: Any, dist_params: PyTree, rng: Key) -> PyTree:
        return proba_dist.sample(dist_params, rng)
