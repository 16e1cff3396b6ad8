"""What all policy objectives share: the loss, the regularizer, the metrics, the shell."""

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
from triax.learning.batches import EncodedBatch
from triax.learning.contexts import Places
from triax.learning.evaluation import TRAINED, evaluate_at
from triax.regularizers import Regularizer

CERTAIN = 0.1
"""A log-probability nearer to 0 than this is within the range that every clipped ratio may move in anyway."""


class PolicyObjective(Updater):
    """Something to maximise by moving a policy.

    ``loss = -objective + mean(W * regularizer)``. The policy runs in training mode, critics and the function of the
    regularizer in evaluation mode: running statistics of the policy take in the states of each batch once, after its
    own pass.

    Args:
        pi: the ``Policy`` to train.
        optimizer: an optax ``GradientTransformation``; default Adam with learning rate 1e-3.
        regularizer: added to the loss; it is evaluated with the weights of its own ``f``, those in training if that
            is ``pi``.

    Raises:
        TypeError: ``pi`` is no ``Policy`` (value-based policies have no weights of their own), or ``regularizer`` no
            ``Regularizer`` of a function in the spaces of ``pi``.
    """

    REQUIRES_PROPENSITIES: ClassVar[bool] = False
    """Whether the objective reads ``logP`` of the batch."""

    def __init__(
        self,
        pi: Any,
        optimizer: optax.GradientTransformation | None = None,
        regularizer: Regularizer | None = None,
    ) -> None:
        if not isinstance(pi, Policy):
            raise TypeError(f"{self._name}: pi must be a Policy; got {type(pi).__name__}.")
        if regularizer is not None:
            _check_regularizer(self._name, regularizer, pi)
        self._regularizer = regularizer
        self._encoder = BatchEncoder(
            self._name,
            pi.observation_space,
            pi.action_space,
            recorded_steps=() if regularizer is None else regularizer.recorded_steps,
        )
        super().__init__(pi, optimizer)

    @property
    def pi(self) -> Any:
        """The policy in training."""
        return self._trained

    @property
    def regularizer(self) -> Regularizer | None:
        """The regularizer; fixed, its coefficients are not."""
        return self._regularizer

    @property
    def hyperparams(self) -> dict[str, Any]:
        """What ``objective_func`` reads besides weights and batch; the values may change between steps."""
        return self._hyperparams()

    def _hyperparams(self) -> dict[str, Any]:
        """The same for a call that donates the weights of ``pi``, with functions exported."""
        return {"regularizer": {} if self._regularizer is None else self._regularizer.hyperparams}

    # ------------------------------------------------------------------ the loss

    @abstractmethod
    def objective_func(
        self, params: PyTree, state: PyTree, hyperparams: dict, rng: Key, transition_batch: Any, Adv: Any
    ) -> tuple[Float[Array, ""], tuple[PyTree, Float[Array, " batch"], PyTree]]:
        """``(objective, (dist_params, log_pi, new_state))``; pure, traceable, differentiable in ``params``.

        The sample weights ``W`` of the batch are taken as they are; ``update`` clips them before.
        """

    def _log_pi(self, params: PyTree, state: PyTree, rng: Key, batch: Any) -> tuple:
        """``(dist_params, log-probability of the batch's actions, new state, regularization)`` in training mode.

        The regularization is that of a ``StatefulModule``, to be subtracted from the objective.
        """
        pi = self._trained
        dist_params, state, regularization = evaluate_at(batch, pi, (params, state), fold_name(rng, "pi"), name=TRAINED)
        A = pi.proba_dist.preprocess_variate(fold_name(rng, "A"), batch.A)
        return dist_params, pi.proba_dist.log_proba(dist_params, A), state, regularization

    def _resolve(self, hyperparams: dict[str, Any]) -> dict[str, Any]:
        """``hyperparams`` from ``_hyperparams``, inside the trace."""
        return hyperparams

    def _context(self) -> dict[str, Any]:
        context = {**super()._context(), "hyperparams": self._hyperparams()}
        if self._regularizer is not None:
            context["regularizer"] = self._regularizer.f.export_weights(self._trained)
        return context

    def _places(self, context: dict[str, Any]) -> Places:
        hyperparams = context["hyperparams"]
        places = {name: (hyperparams, name) for name in hyperparams if name != "regularizer"}
        if self._regularizer is None:
            return places
        return {**places, "reg": (context, "regularizer"), "reg_hparams": (hyperparams, "regularizer")}

    def _loss(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        hyperparams, (transitions, Adv) = self._resolve(context["hyperparams"]), batch
        transitions = clip_weights(transitions, context["weight_clip"])
        objective, (_, log_pi, new_state) = self.objective_func(
            params, function_state, hyperparams, fold_name(rng, "objective"), transitions, Adv
        )
        loss, metrics = -objective, {}
        if self._regularizer is not None:
            f = self._regularizer.f
            own = f.resolve_weights(context["regularizer"], self._trained, (params, function_state))
            term, metrics = self._regularizer.batch_eval(
                own[0], hyperparams["regularizer"], own[1], fold_name(rng, "regularizer"), transitions
            )
            loss = loss + jnp.mean(transitions.W * term)
        kl_div = jnp.mean(transitions.logP - log_pi)
        metrics = {"loss": loss, "loss_bare": -objective, "kl_div_old": kl_div, **metrics}
        return loss, LossOutput(new_state, {f"{self._name}/{key}": value for key, value in metrics.items()})

    def _facts(self) -> list[str]:
        facts = super()._facts()
        return facts if self._regularizer is None else [*facts, f"regularizer={self._regularizer}"]

    # ------------------------------------------------------------------ the shell

    def _encode(self, transition_batch: Any) -> tuple[EncodedBatch, Any]:
        transitions, Adv = transition_batch
        encoded = self._encoder(transitions)
        batch = encoded, self._checked_advantage(Adv, encoded.shape)
        if self.REQUIRES_PROPENSITIES and isinstance(transitions.logP, np.ndarray) and not transitions.logP.any():
            self._check_certain(batch)
        return batch

    def _check_certain(self, batch: tuple[EncodedBatch, Any]) -> None:
        """``ValueError`` unless the policy is all but certain of the actions too, so that zeros may be true."""

        def log_pi(params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> Array:
            return self._log_pi(params, function_state, rng, batch[0])[1]

        found = np.asarray(self._evaluate_encoded("log_pi", log_pi, batch))
        if np.max(np.abs(found)) > CERTAIN:
            raise ValueError(
                f"{self._name}: every logP of the batch is 0, which says that each action had probability 1; the policy"
                f" gives log-probabilities from {np.min(found):.3g} to {np.max(found):.3g}. Act with"
                " pi(s, return_logp=True) and pass logp to tracer.add. Nothing was trained."
            )

    def _checked_advantage(self, Adv: Any, shape: tuple[int, ...]) -> Any:
        if Adv is None:
            raise TypeError(
                f"{self._name}: Adv must be a vector of advantages [batch], one for each transition; got None. Try"
                f" Adv = simple_td.plain_td_error(batch), with simple_td = SimpleTD(v), then update(batch, Adv)."
            )
        if not isinstance(Adv, jax.Array):
            Adv = np.asarray(Adv, np.float32)
            if not np.isfinite(Adv).all():
                raise ValueError(f"{self._name}: Adv must be finite; got NaN or infinity. Nothing was trained.")
        if Adv.shape != shape:
            raise ValueError(f"{self._name}: Adv must have the shape of Rn, {shape}; got {Adv.shape}.")
        if Adv.ndim != 1:  # on the device even a reshape to the same shape is a call of its own
            Adv = Adv.reshape(-1)  # rows, as of the batch
        return Adv if Adv.dtype == np.float32 else Adv.astype(np.float32)

    def update(self, transition_batch: Any, Adv: Any = None, *, soft_update: Any = None) -> dict[str, Any]:
        """Train in place on one batch; the metrics, on the device.

        Metrics: ``<Class>/loss``, ``/loss_bare`` (without regularizer), ``/kl_div_old`` (the estimate
        ``mean(logP - log pi)`` of the divergence from the behaviour policy), ``/grads_max``, ``/grads_norm``.

        Args:
            transition_batch: a ``TransitionBatch``, or a ``Trajectory`` for a policy with memory.
            Adv: advantages ``[batch]``; ``[time - burn_in, batch]`` for a trajectory. Likelihood objectives need it.
            soft_update: ``(pi_targ, tau)`` then moves a target policy towards ``pi``, as
                ``pi_targ.soft_update(pi, tau)`` would, in the same compiled call.

        Raises:
            TypeError: there is no ``Adv``; ``soft_update`` is no such pair, or the target is of another class or form.
            ValueError: the batch or ``Adv`` holds NaN, an action is outside the space, or shapes disagree; ``logP`` is
                read (``REQUIRES_PROPENSITIES``) and all 0, though the policy is not that certain.
            NonFiniteError: the step before had gradients that are not finite; it was left out.
        """
        return self._update((transition_batch, Adv), soft_update)[0]

    def grads_and_metrics(self, transition_batch: Any, Adv: Any = None) -> tuple[PyTree, PyTree, dict[str, Any]]:
        """``(grads, function_state, metrics)`` of a batch; nothing is trained."""
        grads, output = self._gradients((transition_batch, Adv))
        return grads, output.function_state, output.metrics


def _check_regularizer(who: str, regularizer: Any, pi: Policy) -> None:
    if not isinstance(regularizer, Regularizer):
        raise TypeError(f"{who}: regularizer must be a Regularizer; got {type(regularizer).__name__}.")
    for name in ("observation_space", "action_space"):
        found, wanted = getattr(regularizer.f, name, None), getattr(pi, name)
        if found is not None and found != wanted:
            raise TypeError(f"{who}: regularizer.f must have the {name} of pi, {wanted}; got {found}.")
