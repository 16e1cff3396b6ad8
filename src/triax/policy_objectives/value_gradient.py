"""``DeterministicPG`` and ``SoftPG``: objectives that climb a critic."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.user_warnings import warn_user
from triax.functions import Policy, is_qfunction
from triax.functions.inputs import preprocess_alike
from triax.functions.raw_actions import Adapter, action_adapter
from triax.learning.estimates import estimate_of
from triax.learning.evaluation import evaluate_at
from triax.policy_objectives.base import PolicyObjective
from triax.regularizers import Regularizer


class ValueGradient(PolicyObjective):
    """The value that one or more critics give to the policy's own actions.

    Gradients flow through the critics into the policy; their own weights are constants. A ``StochasticQ`` enters
    through its mean. ``Adv`` is ignored.
    """

    def __init__(
        self,
        pi: Any,
        critics: list[Any],
        optimizer: optax.GradientTransformation | None,
        regularizer: Regularizer | None,
    ) -> None:
        super().__init__(pi, optimizer, regularizer)
        self._critics = critics
        self._adapters: list[Adapter] = [self._checked_adapter(q, pi) for q in critics]

    def _facts(self) -> list[str]:
        return [*super()._facts(), f"critics={len(self._critics)}"]

    def _check_critic(self, argument: str, q: Any) -> None:
        if not is_qfunction(q):
            raise TypeError(f"{self._name}: {argument} must be a q-function; got {type(q).__name__}.")
        if q.modeltype != 1:
            raise TypeError(
                f"{self._name}: {argument} must be of type 1, func(S, A, is_training); got a type-2 function."
            )

    def _checked_adapter(self, q: Any, pi: Policy) -> Adapter:
        """The way of actions from ``pi`` to ``q``, which gradients must pass."""
        if q.observation_space != pi.observation_space:
            raise TypeError(f"{self._name}: q observes {q.observation_space}, the policy {pi.observation_space}.")
        adapt = action_adapter(q, pi, who=self._name)
        if preprocess_alike(q.action_space, q.action_preprocessor, pi.proba_dist.preprocess_variate):
            return adapt
        hint = "Make it with action_preprocessor=pi.proba_dist.preprocess_variate."
        if not np.issubdtype(q.action_space.dtype, np.floating):
            raise TypeError(f"{self._name}: no gradient passes to pi through the integer actions that q takes. {hint}")
        warn_user(
            f"{self._name}: q.action_preprocessor differs from pi.proba_dist.preprocess_variate, so actions are decoded"
            f" on their way from pi to q. {hint}"
        )
        return adapt

    @property
    def hyperparams(self) -> dict[str, Any]:
        """The weights ``q`` of the critics, a list of ``(params, function_state)``, and those of the regularizer."""
        return {**super()._hyperparams(), "q": [(q.params, q.function_state) for q in self._critics]}

    def _hyperparams(self) -> dict[str, Any]:
        return {**super()._hyperparams(), "q": [q.export_weights(self._trained) for q in self._critics]}

    def _resolve(self, hyperparams: dict[str, Any]) -> dict[str, Any]:
        pairs = zip(self._critics, hyperparams["q"], strict=True)
        return {**hyperparams, "q": [q.resolve_weights(exported, self._trained, (None, None)) for q, exported in pairs]}

    def _critic_values(self, hyperparams: dict, rng: Key, batch: Any, X: PyTree) -> list[Float[Array, " batch"]]:
        """What each critic says of the raw actions ``X``, in original units."""
        rng_A, rng_q = random.split(fold_name(rng, "critics"))
        values = []
        for q, adapt, weights in zip(self._critics, self._adapters, hyperparams["q"], strict=True):
            output = evaluate_at(batch, q, weights, rng_q, name="q", actions=adapt(rng_A, X)).output
            values.append(estimate_of(q).mean(output))
        return values

    def _checked_advantage(self, Adv: Any, shape: tuple[int, ...]) -> None:
        return None

    def update(self, transition_batch: Any, Adv: Any = None, *, soft_update: Any = None) -> dict[str, Any]:
        """Train in place on the batch's states; the metrics, on the device. ``Adv`` is ignored."""
        return super().update(transition_batch, None, soft_update=soft_update)

    def grads_and_metrics(self, transition_batch: Any, Adv: Any = None) -> tuple[PyTree, PyTree, dict[str, Any]]:
        """``(grads, function_state, metrics)`` of a batch; nothing is trained."""
        return super().grads_and_metrics(transition_batch, None)


class DeterministicPG(ValueGradient):
    r"""The deterministic policy gradient: :math:`\text{mean}(W\, q_\text{targ}(s, \text{mode of } \pi(s)))`.

    Source: Silver et al. 2014; Lillicrap et al. 2015, arXiv:1509.02971.

    Args:
        pi: the ``Policy`` to train; of discrete actions the relaxed one-hot mode is used.
        q_targ: a type-1 q-function. Make it with ``action_preprocessor=pi.proba_dist.preprocess_variate``, so that
            both share the raw action space; otherwise a ``Box`` action is decoded on its way.
        optimizer, regularizer: as in :class:`PolicyObjective`.

    Raises:
        TypeError: ``q_targ`` is no type-1 q-function.
    """

    def __init__(
        self,
        pi: Any,
        q_targ: Any,
        optimizer: optax.GradientTransformation | None = None,
        regularizer: Regularizer | None = None,
    ) -> None:
        self._check_critic("q_targ", q_targ)
        super().__init__(pi, [q_targ], optimizer, regularizer)

    @property
    def q_targ(self) -> Any:
        """The critic."""
        return self._critics[0]

    def objective_func(
        self, params: PyTree, state: PyTree, hyperparams: dict, rng: Key, transition_batch: Any, Adv: Any
    ) -> tuple[Float[Array, ""], tuple[PyTree, Float[Array, " batch"], PyTree]]:
        """``(objective, (dist_params, log_pi, new_state))``."""
        dist_params, log_pi, state, regularization = self._log_pi(params, state, rng, transition_batch)
        mode = self._trained.proba_dist.mode(dist_params)
        (value,) = self._critic_values(hyperparams, rng, transition_batch, mode)
        objective = jnp.mean(transition_batch.W * value) - regularization
        return objective, (dist_params, log_pi, state)


class SoftPG(ValueGradient):
    r"""The reparametrised policy gradient of SAC: :math:`\text{mean}(W \min_i q_i(s, a))`, :math:`a \sim \pi(s)`.

    Entropy comes only through a regularizer.

    Source: Haarnoja et al. 2018, arXiv:1812.05905, eq. 9.

    Args:
        pi: the ``Policy`` to train.
        q_targ_list: a list or tuple of type-1 q-functions; see :class:`DeterministicPG`.
        optimizer, regularizer: as in :class:`PolicyObjective`.

    Raises:
        TypeError: ``q_targ_list`` is no list or tuple of type-1 q-functions.
        ValueError: it is empty.
    """

    def __init__(
        self,
        pi: Any,
        q_targ_list: Any,
        optimizer: optax.GradientTransformation | None = None,
        regularizer: Regularizer | None = None,
    ) -> None:
        if not isinstance(q_targ_list, list | tuple):
            raise TypeError(f"{self._name}: q_targ_list must be a list or tuple; got {type(q_targ_list).__name__}.")
        if not q_targ_list:
            raise ValueError(f"{self._name}: q_targ_list must not be empty.")
        for q in q_targ_list:
            self._check_critic("q_targ_list", q)
        super().__init__(pi, list(q_targ_list), optimizer, regularizer)

    @property
    def q_targ_list(self) -> list[Any]:
        """The critics."""
        return list(self._critics)

    def objective_func(
        self, params: PyTree, state: PyTree, hyperparams: dict, rng: Key, transition_batch: Any, Adv: Any
    ) -> tuple[Float[Array, ""], tuple[PyTree, Float[Array, " batch"], PyTree]]:
        """``(objective, (dist_params, log_pi, new_state))``."""
        dist_params, log_pi, state, regularization = self._log_pi(params, state, rng, transition_batch)
        sample = self._trained.proba_dist.sample(dist_params, fold_name(rng, "sample"))
        values = self._critic_values(hyperparams, rng, transition_batch, sample)
        smallest = jnp.min(jnp.stack(values), axis=0)
        objective = jnp.mean(transition_batch.W * smallest) - regularization
        return objective, (dist_params, log_pi, state)
