"""Entropy regularizers: they reward randomness."""

import operator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.core.numbers import Checked, check_number
from triax.regularizers.regularizer import Regularizer, takes_actions
from triax.reward_tracing import TransitionBatch


class EntropyRegularizer(Regularizer):
    r"""The term :math:`-\beta H[f(s)]`, in nats.

    Args:
        f: a stochastic function.
        beta: a plain attribute that may be annealed without recompilation.

    Raises:
        TypeError: ``f`` is not stochastic, or ``beta`` is no number.
        ValueError: ``beta`` is not finite, here or when it is assigned.
        NotImplementedError: its distribution has no entropy, as that of a ``StochasticQ`` of quantiles.
    """

    beta: Checked[float] = Checked(check_number, "The weight of the term.")

    def __init__(self, f: Any, beta: float = 0.001) -> None:
        super().__init__(f)
        self.beta = beta
        jax.eval_shape(f.proba_dist.entropy, f.proba_dist.default_priors)

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``beta``."""
        return {"beta": np.float32(self.beta)}

    def _facts(self) -> list[str]:
        return [f"beta={self.beta:g}"]

    def function(self, dist_params: PyTree, **hyperparams: Any) -> Float[Array, " batch"]:
        """``-beta * entropy``."""
        return -hyperparams["beta"] * self.f.proba_dist.entropy(dist_params)

    def metrics_func(self, dist_params: PyTree, **hyperparams: Any) -> dict[str, Any]:
        """``EntropyRegularizer/beta`` and the mean ``EntropyRegularizer/entropy``."""
        entropy = jnp.mean(self.f.proba_dist.entropy(dist_params))
        return {"EntropyRegularizer/beta": hyperparams["beta"], "EntropyRegularizer/entropy": entropy}


class NStepEntropyRegularizer(EntropyRegularizer):
    r"""The term :math:`-\beta \sum_k \gamma^{n_k} H[f(s_{t+n_k})]`; states after the episode's end do not count.

    Needs batches traced with ``NStep(..., record_extra_info=True)``. In a TD target it is subtracted as it is: the
    discount is its own. With the offset ``n`` of the tracer alone, that is the entropy of the bootstrapped state.

    Args:
        f: a function of the state.
        n: the offsets :math:`n_k`, a tuple, list or array of non-negative integers in any order; fixed.
        beta: a plain attribute that may be annealed without recompilation.
        gamma: the discount factor, a plain attribute too.

    Raises:
        TypeError: ``n`` is of another type, or ``f`` is not stochastic or takes actions.
        ValueError: ``n`` is empty or has a negative entry, ``beta`` is not finite, or ``gamma`` not in [0, 1].
    """

    gamma: Checked[float] = Checked(partial(check_number, low=0, high=1), "The discount factor.")

    def __init__(self, f: Any, n: Any, beta: float = 0.001, gamma: float = 0.99) -> None:
        super().__init__(f, beta)
        if takes_actions(f):
            raise TypeError(f"NStepEntropyRegularizer: f must be a function of the state; got {type(f).__name__}.")
        self._n, self.gamma = _offsets(n), gamma

    @property
    def n(self) -> tuple[int, ...]:
        """The offsets."""
        return self._n

    @property
    def recorded_steps(self) -> tuple[int, ...]:
        """The offsets."""
        return self._n

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``beta`` and ``gamma``."""
        return {**super().hyperparams, "gamma": np.float32(self.gamma)}

    def _facts(self) -> list[str]:
        return [f"n={self.n}", *super()._facts(), f"gamma={self.gamma:g}"]

    @staticmethod
    def valid_from_done(
        dones: Bool[Array, "steps *batch"] | Bool[np.ndarray, "steps *batch"],
    ) -> Float[Array, "steps *batch"]:
        """1 up to and including the first ``True`` along axis 0, 0 after it."""
        done = jnp.asarray(dones).astype(jnp.int32)
        return (jnp.cumsum(done, axis=0) - done == 0).astype(jnp.float32)

    def batch_eval(
        self, params: PyTree, hyperparams: dict, state: PyTree, rng: Key, transition_batch: TransitionBatch
    ) -> tuple[Float[Array, " batch"], dict[str, Any]]:
        """``(term, metrics)`` over the recorded states of each transition; traceable."""
        info = self._recorded(transition_batch)
        valid = self.valid_from_done(jnp.stack([jnp.asarray(done) for done in info["dones"]]))
        mask = jnp.stack([valid[k] for k in self.n])
        discount = jnp.stack([hyperparams["gamma"] ** k for k in self.n])[:, None]
        keys = random.split(rng, len(self.n))
        states = [info["states"][k] for k in self.n]
        dist_params = [self._dist_params(params, state, key, S) for key, S in zip(keys, states, strict=True)]
        entropy = jnp.stack([self.f.proba_dist.entropy(part) for part in dist_params])
        # Not a product: states after the end are arbitrary, and 0 * inf is NaN.
        entropy = jnp.where(mask > 0, entropy, 0.0)
        term = -hyperparams["beta"] * jnp.sum(discount * entropy, axis=0)
        mean = jnp.sum(entropy) / jnp.maximum(jnp.sum(mask), 1)
        return term, {"EntropyRegularizer/beta": hyperparams["beta"], "EntropyRegularizer/entropy": mean}

    def target_term(
        self, params: PyTree, hyperparams: dict, state: PyTree, rng: Key, transition_batch: TransitionBatch
    ) -> tuple[Float[Array, " batch"], dict[str, Any]]:
        """What ``batch_eval`` gives."""
        return self.batch_eval(params, hyperparams, state, rng, transition_batch)

    def _dist_params(self, params: PyTree, state: PyTree, rng: Key, S: PyTree) -> PyTree:
        rng_S, rng_f = random.split(rng)
        return self.f.function(params, state, rng_f, self.f.observation_preprocessor(rng_S, S), False)[0]

    def _recorded(self, transition_batch: TransitionBatch) -> dict[str, Any]:
        info = transition_batch.extra_info
        if not isinstance(info, dict) or "states" not in info:
            raise TypeError(
                "NStepEntropyRegularizer: batch.extra_info is missing. Trace with NStep(..., record_extra_info=True)."
            )
        if max(self.n) >= len(info["states"]):
            raise ValueError(
                f"NStepEntropyRegularizer: n reaches {max(self.n)} steps ahead, but the batch was traced with"
                f" n={len(info['states']) - 1}."
            )
        return info


def _offsets(n: Any) -> tuple[int, ...]:
    if not isinstance(n, tuple | list | np.ndarray | jax.Array):
        raise TypeError(
            f"NStepEntropyRegularizer: n must be a tuple, list or array of offsets; got {type(n).__name__}."
        )
    try:
        offsets = tuple(operator.index(k) for k in n)
    except TypeError as error:
        raise TypeError(f"NStepEntropyRegularizer: n must hold integers; got {n!r}.") from error
    if not offsets or min(offsets) < 0:
        raise ValueError(f"NStepEntropyRegularizer: n must be a non-empty list of non-negative offsets; got {n!r}.")
    return offsets
