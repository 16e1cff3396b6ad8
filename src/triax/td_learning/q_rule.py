"""What the rules for q-functions share."""

from typing import Any

import jax
from jaxtyping import Array, Float, PyTree

from triax.core.keys import Key
from triax.learning.estimates import estimate_of, greedy
from triax.reward_tracing import TransitionBatch
from triax.td_learning.base import TDRule, Weights


class QRule(TDRule):
    """A TD rule that trains ``q`` towards a target with ``q_targ`` in it."""

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

    def _target_at(self, params: dict, state: dict) -> tuple[Any, Weights]:
        return self._target, (params["q_targ"], state["q_targ"])

    def _predict(self, f: Any, weights: Weights, rng: Key, batch: TransitionBatch, training: bool) -> tuple:
        rng_S, rng_A, rng_q = jax.random.split(rng, 3)
        S, A = f.observation_preprocessor(rng_S, batch.S), f.action_preprocessor(rng_A, batch.A)
        return f.function_type1(*weights, rng_q, S, A, training)


# ------------------------------------------------------------------ at the next state, in evaluation mode


def all_actions(f: Any, weights: Weights, rng: Key, S: Any) -> PyTree:
    """The output of ``f`` for all actions in clean states ``S``."""
    rng_S, rng_q = jax.random.split(rng)
    return f.function_type2(*weights, rng_q, f.observation_preprocessor(rng_S, S), False)[0]


def one_action(f: Any, weights: Weights, rng: Key, S: Any, A: PyTree) -> PyTree:
    """The output of ``f`` for raw actions ``A`` in clean states ``S``."""
    rng_S, rng_q = jax.random.split(rng)
    return f.function_type1(*weights, rng_q, f.observation_preprocessor(rng_S, S), A, False)[0]


def greedy_actions(f: Any, output: PyTree) -> Float[Array, "batch n"]:
    """Weights of the actions that are best by an output of ``f`` for all actions."""
    return greedy(estimate_of(f).values(output))


def action_probabilities(pi: Any, weights: Weights, rng: Key, S: Any) -> Float[Array, "batch n"]:
    """Of a policy on ``Discrete`` actions in clean states ``S``."""
    rng_S, rng_pi = jax.random.split(rng)
    dist_params, _ = pi.function(*weights, rng_pi, pi.observation_preprocessor(rng_S, S), False)
    return pi.proba_dist.mean(dist_params)
