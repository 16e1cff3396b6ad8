"""The base of regularizers: a number per sample, computed from the distribution that a function gives."""

from abc import abstractmethod
from typing import Any

from jaxtyping import Array, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.core.sealed import Sealed
from triax.functions import is_stochastic
from triax.learning.evaluation import Place, evaluate_at
from triax.reward_tracing import TransitionBatch


class Regularizer(Sealed):
    """A term that is added to a loss and subtracted from a TD target.

    ``f`` is fixed. The numbers in ``hyperparams`` are plain attributes that may change between steps without
    recompilation.

    Args:
        f: a stochastic function: ``Policy``, ``StochasticV``, ``StochasticQ`` or a stochastic model.

    Raises:
        TypeError: ``f`` is not stochastic.
    """

    def __init__(self, f: Any) -> None:
        if not is_stochastic(f):
            raise TypeError(
                f"{type(self).__name__}: f must be stochastic (a Policy, StochasticV, StochasticQ, ...);"
                f" got {type(f).__name__}."
            )
        self._f = f

    def __repr__(self) -> str:
        facts = [type(self.f).__name__, *self._facts()]
        return f"{type(self).__name__}({', '.join(facts)})"

    def _facts(self) -> list[str]:
        """What a subclass prints after ``f``."""
        return []

    @property
    def f(self) -> Any:
        """The function that is regularized."""
        return self._f

    @property
    def recorded_steps(self) -> tuple[int, ...]:
        """Which steps of ``extra_info`` it reads, traced with ``NStep(..., record_extra_info=True)``; mostly none."""
        return ()

    @property
    def hyperparams(self) -> dict[str, Any]:
        """The numbers that ``function`` reads."""
        return {}

    @abstractmethod
    def function(self, dist_params: PyTree, **hyperparams: Any) -> Float[Array, " batch"]:
        """The term for each sample, from the parameters of ``f``'s distribution; traceable."""

    @abstractmethod
    def metrics_func(self, dist_params: PyTree, **hyperparams: Any) -> dict[str, Any]:
        """Metrics ``<Class>/<name>``; traceable."""

    def batch_eval(
        self, params: PyTree, hyperparams: dict, state: PyTree, rng: Key, transition_batch: TransitionBatch
    ) -> tuple[Float[Array, " batch"], dict[str, Any]]:
        """``(term, metrics)`` at the batch's states (and actions, if ``f`` takes them); traceable."""
        return self._at(params, hyperparams, state, rng, transition_batch, "S")

    def target_term(
        self, params: PyTree, hyperparams: dict, state: PyTree, rng: Key, transition_batch: TransitionBatch
    ) -> tuple[Float[Array, " batch"], dict[str, Any]]:
        """``(term, metrics)`` to subtract from a TD target, in original units: at ``S_next``, times ``In``."""
        term, metrics = self._at(params, hyperparams, state, rng, transition_batch, "S_next")
        return transition_batch.In * term, metrics

    def _at(
        self, params: PyTree, hyperparams: dict, state: PyTree, rng: Key, batch: TransitionBatch, at: Place
    ) -> tuple:
        f, (rng_A, rng_f) = self.f, random.split(rng)
        A = f.action_preprocessor(rng_A, batch.A) if takes_actions(f) else None
        dist_params = evaluate_at(batch, f, (params, state), rng_f, name="reg", at=at, actions=A).output
        return self.function(dist_params, **hyperparams), self.metrics_func(dist_params, **hyperparams)


def takes_actions(f: Any) -> bool:
    """Whether ``f`` is a function of state and action."""
    return hasattr(type(f), "function_type1")
