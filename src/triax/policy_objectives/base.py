"""What all policy objectives share: the loss, the regularizer, the metrics, the shell."""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from triax.core.keys import Key, fold_name
from triax.functions import Policy
from triax.learning import BatchEncoder, LossOutput, Updater, clip_weights
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch


class PolicyObjective(Updater):
    """Something to maximise by moving a policy.

    ``loss = -objective + mean(W * regularizer)``. The policy runs in training mode, critics in evaluation mode.
    ``weight_clip`` bounds the sample weights ``W`` of a batch, ``None`` leaves them as they are.

    Args:
        pi: the ``Policy`` to train.
        optimizer: an optax ``GradientTransformation``; default Adam with learning rate 1e-3.
        regularizer: added to the loss; it is evaluated with the weights of its own ``f``, those in training if that
            is ``pi``.

    Raises:
        TypeError: ``pi`` is no ``Policy`` (value-based policies have no weights of their own), or ``regularizer`` no
            ``Regularizer``.
    """

    REQUIRES_PROPENSITIES: ClassVar[bool] = False
    """Whether the objective reads ``logP`` of the batch."""

    weight_clip: tuple[float, float] | None = (0.0, 10.0)

    def __init__(
        self,
        pi: Any,
        optimizer: optax.GradientTransformation | None = None,
        regularizer: Regularizer | None = None,
    ) -> None:
        if not isinstance(pi, Policy):
            raise TypeError(f"{self._name}: pi must be a Policy; got {type(pi).__name__}.")
        if regularizer is not None and not isinstance(regularizer, Regularizer):
            raise TypeError(f"{self._name}: regularizer must be a Regularizer; got {type(regularizer).__name__}.")
        self._regularizer = regularizer
        self._encoder = BatchEncoder(
            self._name,
            pi.observation_space,
            pi.action_space,
            extra_info=regularizer is not None and regularizer.needs_extra_info,
        )
        super().__init__(pi, optimizer)

    @property
    def pi(self) -> Any:
        """The policy in training."""
        return self._trained

    @property
    def regularizer(self) -> Regularizer | None:
        """The regularizer."""
        return self._regularizer

    @property
    def hyperparams(self) -> dict[str, Any]:
        """What ``objective_func`` reads besides weights and batch; the values may change between steps."""
        return {"regularizer": {} if self._regularizer is None else self._regularizer.hyperparams}

    # ------------------------------------------------------------------ the loss

    @abstractmethod
    def objective_func(
        self, params: PyTree, state: PyTree, hyperparams: dict, rng: Key, transition_batch: Any, Adv: Any
    ) -> tuple[Float[Array, ""], tuple[PyTree, Float[Array, " batch"], PyTree]]:
        """``(objective, (dist_params, log_pi, new_state))``; pure, traceable, differentiable in ``params``."""

    def _log_pi(self, params: PyTree, state: PyTree, rng: Key, batch: Any) -> tuple:
        """``(dist_params, log-probability of the batch's actions, new state)`` in training mode."""
        pi = self._trained
        S = pi.observation_preprocessor(fold_name(rng, "S"), batch.S)
        dist_params, state = pi.function(params, state, fold_name(rng, "pi"), S, True)
        A = pi.proba_dist.preprocess_variate(fold_name(rng, "A"), batch.A)
        return dist_params, pi.proba_dist.log_proba(dist_params, A), state

    def _sample_weights(self, batch: Any) -> Float[Array, " batch"]:
        return clip_weights(batch.W, self.weight_clip)

    def _context(self) -> PyTree:
        if self._regularizer is None:
            return self.hyperparams, None
        return self.hyperparams, self._regularizer.f.export_weights(self._trained)

    def _loss(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        hyperparams, exported = context
        transitions, Adv = batch
        objective, (_, log_pi, new_state) = self.objective_func(
            params, function_state, hyperparams, fold_name(rng, "objective"), transitions, Adv
        )
        loss, metrics = -objective, {}
        if self._regularizer is not None:
            own = self._regularizer.f.resolve_weights(exported, self._trained, (params, function_state))
            term, metrics = self._regularizer.batch_eval(
                own[0], hyperparams["regularizer"], own[1], fold_name(rng, "regularizer"), transitions
            )
            loss = loss + jnp.mean(self._sample_weights(transitions) * term)
        metrics = {
            f"{self._name}/loss": loss,
            f"{self._name}/loss_bare": -objective,
            f"{self._name}/kl_div_old": jnp.mean(transitions.logP - log_pi),
            **{f"{self._name}/{key}": value for key, value in metrics.items()},
        }
        return loss, LossOutput(new_state, metrics)

    # ------------------------------------------------------------------ the shell

    def _encode(self, transition_batch: Any) -> tuple[TransitionBatch, Any]:
        transitions, Adv = transition_batch
        transitions = self._encoder(transitions)
        if self.REQUIRES_PROPENSITIES and isinstance(transitions.logP, np.ndarray) and not transitions.logP.any():
            warnings.warn(
                f"{self._name}: every logP of the batch is 0. Act with pi(s, return_logp=True) and pass logp to"
                " tracer.add.",
                stacklevel=4,
            )
        return transitions, self._checked_advantage(Adv, transitions)

    def _checked_advantage(self, Adv: Any, transitions: TransitionBatch) -> Any:
        if Adv is None:
            return None
        Adv = Adv if isinstance(Adv, jax.Array) else np.asarray(Adv, np.float32)
        if Adv.shape != transitions.Rn.shape:
            raise ValueError(f"{self._name}: Adv must have shape {transitions.Rn.shape}; got {Adv.shape}.")
        if isinstance(Adv, np.ndarray) and not np.isfinite(Adv).all():
            raise ValueError(f"{self._name}: Adv must be finite; got NaN or infinity. Nothing was trained.")
        return Adv

    def update(self, transition_batch: Any, Adv: Any) -> dict[str, Any]:
        """Train in place on one batch; the metrics, on the device.

        Metrics: ``<Class>/loss``, ``/loss_bare`` (without regularizer), ``/kl_div_old`` (the estimate
        ``mean(logP - log pi)`` of the divergence from the behaviour policy), ``/grads_max``, ``/grads_norm``.

        Args:
            transition_batch: a ``TransitionBatch``.
            Adv: advantages ``[batch]``.

        Raises:
            ValueError: the batch or ``Adv`` holds NaN, an action is outside the space, or shapes disagree.
            NonFiniteError: the step before had gradients that are not finite; it was left out.
        """
        return self._update((transition_batch, Adv))[0]

    def grads_and_metrics(self, transition_batch: Any, Adv: Any) -> tuple[PyTree, PyTree, dict[str, Any]]:
        """``(grads, function_state, metrics)`` of a batch; nothing is trained."""
        grads, output = self._gradients((transition_batch, Adv))
        return grads, output.function_state, output.metrics
