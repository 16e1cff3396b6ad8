"""What the rules for q-functions share."""

from typing import Any

from jaxtyping import Array, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.learning.estimates import estimate_of, greedy
from triax.learning.evaluation import Evaluated, evaluate_at
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

    def _target_at(self, params: dict, state: dict) -> tuple[str, Any, Weights]:
        return "q_targ", self._target, (params["q_targ"], state["q_targ"])

    def _predict(self, name: str, f: Any, weights: Weights, rng: Key, batch: TransitionBatch) -> Evaluated:
        rng_A, rng_q = random.split(rng)
        A = f.action_preprocessor(rng_A, batch.A)
        return evaluate_at(batch, f, weights, rng_q, name=name, actions=A)


# ------------------------------------------------------------------ at the next state, in evaluation mode


def all_actions(batch: TransitionBatch, name: str, f: Any, weights: Weights, rng: Key) -> PyTree:
    """The output of ``f`` for all actions in the next states."""
    return evaluate_at(batch, f, weights, rng, name=name, at="S_next").output


def one_action(batch: TransitionBatch, f: Any, weights: Weights, rng: Key, A: PyTree) -> PyTree:
    """The output of the target function ``f`` for raw actions ``A`` in the next states."""
    return evaluate_at(batch, f, weights, rng, name="q_targ", at="S_next", actions=A).output


def greedy_actions(f: Any, output: PyTree) -> Float[Array, "batch n"]:
    """Weights of the actions that are best by an output of ``f`` for all actions."""
    return greedy(estimate_of(f).values(output))


def next_dist_params(batch: TransitionBatch, pi: Any, weights: Weights, rng: Key) -> PyTree:
    """Parameters of the distribution of next actions by a target policy."""
    return evaluate_at(batch, pi, weights, rng, name="pi_targ", at="S_next").output


def action_probabilities(batch: TransitionBatch, pi: Any, weights: Weights, rng: Key) -> Float[Array, "batch n"]:
    """Of a policy on ``Discrete`` actions in the next states."""
    return pi.proba_dist.mean(next_dist_params(batch, pi, weights, rng))
