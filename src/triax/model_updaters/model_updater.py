"""``ModelUpdater``: transition models and reward functions from data."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from triax.core import random
from triax.core.keys import Key
from triax.functions import is_reward_function, is_stochastic, is_transition_model
from triax.learning import BatchEncoder, LossOutput, Updater, clip_weights
from triax.learning.batches import EncodedBatch
from triax.learning.estimates import estimate_of
from triax.learning.printing import describe_callable
from triax.losses.value_losses import huber
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch


class ModelUpdater(Updater):
    """Trains a model of the environment on one-step transitions (trace with ``n=1``).

    Deterministic models regress with ``loss_function``, leaf by leaf: transition models to the preprocessed
    ``S_next``, reward functions to the transformed ``Rn``. Of a leaf with several components the mean of their losses
    counts, of several leaves the sum. Stochastic models maximise the likelihood of what was observed: transition
    models minimise its negative log-probability, binned rewards the cross-entropy with the reward projected on the
    bins, quantiles the quantile Huber loss.

    Args:
        model: a transition model or reward function, deterministic or stochastic.
        optimizer: an optax ``GradientTransformation``; default Adam with learning rate 1e-3.
        loss_function: ``(y_true, y_pred, w=None) -> scalar`` for deterministic models; default ``huber``.
        regularizer: of the stochastic model itself; added to the loss.

    Raises:
        TypeError: an argument is of another kind; ``loss_function`` with a stochastic model; ``regularizer`` with a
            deterministic one or of another function.
    """

    def __init__(
        self,
        model: Any,
        optimizer: optax.GradientTransformation | None = None,
        loss_function: Callable | None = None,
        regularizer: Regularizer | None = None,
    ) -> None:
        if not (is_transition_model(model) or is_reward_function(model)):
            raise TypeError(
                f"ModelUpdater: model must be a transition model or a reward function; got {type(model).__name__}."
            )
        if loss_function is not None:
            _check_loss_function(loss_function, model)
        if regularizer is not None:
            _check_regularizer(regularizer, model)
        self._loss_function = loss_function or huber
        self._regularizer = regularizer
        self._encoder = BatchEncoder("ModelUpdater", model.observation_space, model.action_space)
        super().__init__(model, optimizer)

    @property
    def model(self) -> Any:
        """The model in training."""
        return self._trained

    @property
    def regularizer(self) -> Regularizer | None:
        """The regularizer; fixed, its coefficients are not."""
        return self._regularizer

    @property
    def loss_function(self) -> Callable:
        """``(y_true, y_pred, w=None) -> scalar`` of a deterministic model; assigning takes effect with the next call.

        Raises:
            TypeError: it is no function, or the model is stochastic.
        """
        return self._loss_function

    @loss_function.setter
    def loss_function(self, loss_function: Callable) -> None:
        _check_loss_function(loss_function, self._trained)
        self._loss_function = loss_function
        self._jitted.clear()

    @property
    def hyperparams(self) -> dict[str, Any]:
        """Those of the regularizer; the values may change between steps."""
        return {"regularizer": {} if self._regularizer is None else self._regularizer.hyperparams}

    # ------------------------------------------------------------------ the loss

    def _context(self) -> dict[str, Any]:
        return {**super()._context(), "hyperparams": self.hyperparams}

    def _loss(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        model, batch = self._trained, clip_weights(batch, context["weight_clip"])
        rng_S, rng_A, rng_model, rng_target = random.split(rng, 4)
        S, A = model.observation_preprocessor(rng_S, batch.S), model.action_preprocessor(rng_A, batch.A)
        output, new_state = model.function_type1(params, function_state, rng_model, S, A, True)
        if is_reward_function(model):
            estimate = estimate_of(model)
            bare = estimate.loss(self._loss_function, estimate.certain(batch.Rn), output, batch.W)
        else:
            bare = self._state_loss(output, batch, rng_target)
        loss, metrics = bare, {}
        if self._regularizer is not None:
            hyperparams = context["hyperparams"]["regularizer"]
            loss = bare + jnp.mean(batch.W * self._regularizer.function(output, **hyperparams))
            metrics = self._regularizer.metrics_func(output, **hyperparams)
        metrics = {"ModelUpdater/loss": loss, "ModelUpdater/loss_bare": bare, **metrics}
        return loss, LossOutput(new_state, metrics)

    def _state_loss(self, output: PyTree, batch: TransitionBatch, rng: Key) -> Float[Array, ""]:
        model = self._trained
        if is_stochastic(model):
            X = model.proba_dist.preprocess_variate(rng, batch.S_next)
            return -jnp.mean(batch.W * model.proba_dist.log_proba(output, X))
        target = model.observation_preprocessor(rng, batch.S_next)
        losses = jax.tree.map(lambda y_true, y_pred: self._leaf_loss(y_true, y_pred, batch.W), target, output)
        return jnp.sum(jnp.stack(jax.tree.leaves(losses)))

    def _leaf_loss(self, y_true: Array, y_pred: Array, W: Float[Array, " batch"]) -> Float[Array, ""]:
        """The mean over components of the loss of each."""
        columns = jax.vmap(lambda t, p: self._loss_function(t, p, W), in_axes=1)
        return jnp.mean(columns(y_true.reshape(len(W), -1), y_pred.reshape(len(W), -1)))

    def _facts(self) -> list[str]:
        facts = super()._facts()
        if not is_stochastic(self._trained):
            facts.append(f"loss_function={describe_callable(self._loss_function)}")
        return facts if self._regularizer is None else [*facts, f"regularizer={self._regularizer}"]

    # ------------------------------------------------------------------ the shell

    def _encode(self, transition_batch: Any) -> EncodedBatch:
        return self._encoder(transition_batch)

    def update(self, transition_batch: Any) -> dict[str, Any]:
        """Train in place on one batch: the metrics, on the device.

        Metrics: ``ModelUpdater/loss``, ``/loss_bare`` (without regularizer), ``/grads_max``, ``/grads_norm``; those of
        the regularizer without prefix.

        Raises:
            ValueError: the batch holds NaN, an action outside the space, or leaves that disagree.
            NonFiniteError: the step before had gradients that are not finite; it was left out.
        """
        return self._update(transition_batch)[0]

    def grads_and_metrics(self, transition_batch: Any) -> tuple[PyTree, PyTree, dict[str, Any]]:
        """``(grads, function_state, metrics)`` of a batch; nothing is trained."""
        grads, output = self._gradients(transition_batch)
        return grads, output.function_state, output.metrics


def _check_loss_function(loss_function: Any, model: Any) -> None:
    if not callable(loss_function):
        raise TypeError(f"ModelUpdater: loss_function must be a function; got {type(loss_function).__name__}.")
    if is_stochastic(model):
        raise TypeError("ModelUpdater: a stochastic model is trained by likelihood; leave loss_function out.")


def _check_regularizer(regularizer: Any, model: Any) -> None:
    if not isinstance(regularizer, Regularizer):
        raise TypeError(f"ModelUpdater: regularizer must be a Regularizer; got {type(regularizer).__name__}.")
    if regularizer.f is not model:
        raise TypeError("ModelUpdater: regularizer must be one of the (stochastic) model itself.")
