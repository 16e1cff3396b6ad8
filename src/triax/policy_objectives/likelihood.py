"""``VanillaPG`` and ``PPOClip``: objectives on the likelihood of the actions that were taken."""

from functools import partial
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from triax.core.keys import Key
from triax.core.numbers import Checked, check_number
from triax.losses import ppo_clip
from triax.policy_objectives.base import PolicyObjective
from triax.regularizers import Regularizer


class VanillaPG(PolicyObjective):
    r"""The policy gradient: :math:`\text{mean}(W\, \text{Adv}\, \log \pi(a \mid s))`.

    Arguments as in :class:`PolicyObjective`. Source: Williams 1992; Sutton & Barto 2018, section 13.3.
    """

    def objective_func(
        self, params: PyTree, state: PyTree, hyperparams: dict, rng: Key, transition_batch: Any, Adv: Any
    ) -> tuple[Float[Array, ""], tuple[PyTree, Float[Array, " batch"], PyTree]]:
        """``(objective, (dist_params, log_pi, new_state))``."""
        dist_params, log_pi, state, regularization = self._log_pi(params, state, rng, transition_batch)
        objective = jnp.mean(transition_batch.W * Adv * log_pi) - regularization
        return objective, (dist_params, log_pi, state)


class PPOClip(PolicyObjective):
    r"""The clipped surrogate: :math:`\text{mean}(W \min(\rho A, \text{clip}(\rho, 1-\epsilon, 1+\epsilon) A))`.

    :math:`\rho = \exp(\log \pi - \log P)`: act with ``return_logp=True`` and trace ``logp``.

    Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7.

    Args:
        pi, optimizer, regularizer: as in :class:`PolicyObjective`.
        epsilon: a plain attribute, at least 0, that may change without recompilation.

    Raises:
        ValueError: ``epsilon`` is negative or not finite, here or when it is assigned; ``TypeError``: no number.
    """

    REQUIRES_PROPENSITIES: ClassVar[bool] = True

    epsilon: Checked[float] = Checked(partial(check_number, low=0), "How far the ratio may move from 1.")

    def __init__(
        self,
        pi: Any,
        optimizer: optax.GradientTransformation | None = None,
        regularizer: Regularizer | None = None,
        epsilon: float = 0.2,
    ) -> None:
        super().__init__(pi, optimizer, regularizer)
        self.epsilon = epsilon

    def _facts(self) -> list[str]:
        return [*super()._facts(), f"epsilon={self.epsilon:g}"]

    def _hyperparams(self) -> dict[str, Any]:
        return {**super()._hyperparams(), "epsilon": np.float32(self.epsilon)}

    def objective_func(
        self, params: PyTree, state: PyTree, hyperparams: dict, rng: Key, transition_batch: Any, Adv: Any
    ) -> tuple[Float[Array, ""], tuple[PyTree, Float[Array, " batch"], PyTree]]:
        """``(objective, (dist_params, log_pi, new_state))``."""
        dist_params, log_pi, state, regularization = self._log_pi(params, state, rng, transition_batch)
        losses = ppo_clip(log_pi, transition_batch.logP, Adv, epsilon=hyperparams["epsilon"])
        objective = -jnp.mean(transition_batch.W * losses) - regularization
        return objective, (dist_params, log_pi, state)
