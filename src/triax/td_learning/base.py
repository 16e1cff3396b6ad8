"""What all TD rules share: the target, the loss against it, the errors and metrics that users read."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from triax.core.keys import Key, fold_name
from triax.functions import is_policy, is_stochastic
from triax.learning import BatchEncoder, LossOutput, Updater, clip_weights
from triax.learning.estimates import estimate_of
from triax.losses.value_losses import huber
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch

LossFunction = Callable[..., Float[Array, ""]]
"""``(y_true, y_pred, w=None) -> scalar``."""


class TDRule(Updater):
    r"""A rule that moves a value function towards a bootstrapped target.

    .. math:: G = f(R_n + I_n\, (f^{-1}(\text{next value}) - \text{regularizer}))

    ``f`` is the function's value transform. No gradient flows into the target. For distributional functions the target
    is a distribution, and the loss cross-entropy or quantile Huber; ``loss_function`` is theirs only as the default
    that shapes the TD error. The trained function runs in training mode, everything in the target in evaluation mode.

    ``weight_clip`` bounds the sample weights ``W`` of a batch, ``None`` leaves them as they are.
    """

    weight_clip: tuple[float, float] | None = (0.0, 10.0)
    _needs_next_action = False

    def __init__(
        self,
        trained: Any,
        target: Any,
        optimizer: optax.GradientTransformation | None,
        loss_function: LossFunction | None,
        policy_regularizer: Regularizer | None,
    ) -> None:
        check_regularizer(self._name, policy_regularizer)
        if loss_function is not None and is_stochastic(trained):
            raise TypeError(
                f"{self._name}: a distributional function has a loss of its own (cross-entropy, quantile Huber);"
                " loss_function is for deterministic ones. Leave it out."
            )
        self._target = trained if target is None else target
        self.policy_regularizer = policy_regularizer
        self._loss_function = loss_function or huber
        self._estimate = estimate_of(trained)
        self._first_target = self._target[0] if isinstance(self._target, list) else self._target
        self._target_estimate = estimate_of(self._first_target)
        self._encoder = BatchEncoder(
            self._name,
            trained.observation_space,
            getattr(trained, "action_space", None),
            next_action=self._needs_next_action,
            extra_info=policy_regularizer is not None and policy_regularizer.needs_extra_info,
        )
        super().__init__(trained, optimizer)

    # ------------------------------------------------------------------ what a rule declares

    @abstractmethod
    def _functions(self) -> dict[str, Any]:
        """The functions in the target under the names of ``target_params``; lists for the clipped rules."""

    @abstractmethod
    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        """The estimate at the next state, ready for ``Estimate.backup``."""

    @abstractmethod
    def _predict(self, f: Any, weights: tuple[Any, Any], rng: Key, batch: TransitionBatch, training: bool) -> tuple:
        """``(output, function_state)`` of ``f`` on the batch's states (and actions)."""

    # ------------------------------------------------------------------ the target

    @property
    def target_params(self) -> dict[str, Any]:
        """The parameters that the target reads: ``v``/``q``, ``v_targ``/``q_targ``, ``pi_targ``, ``reg``, ..."""
        named = {name: _map_functions(f, lambda part: part.params) for name, f in self._functions().items()}
        regularizer = self.policy_regularizer
        if regularizer is not None:
            named |= {"reg": regularizer.f.params, "reg_hparams": regularizer.hyperparams}
        return named

    @property
    def target_function_state(self) -> dict[str, Any]:
        """The function states that the target reads, named as in ``target_params``."""
        named = {name: _map_functions(f, lambda part: part.function_state) for name, f in self._functions().items()}
        if self.policy_regularizer is not None:
            named["reg"] = self.policy_regularizer.f.function_state
        return named

    def target_func(self, target_params: Any, target_state: Any, rng: Key, transition_batch: Any) -> PyTree:
        """The target ``G``, in transformed space ``[batch]``, or parameters of its distribution; pure, traceable.

        Args:
            target_params: as the property of that name gives it.
            target_state: as ``target_function_state`` gives it.
            rng: a key.
            transition_batch: clean, as traced.
        """
        return self._target_and_metrics(target_params, target_state, rng, transition_batch)[0]

    def _target_and_metrics(self, params: dict, state: dict, rng: Key, batch: Any) -> tuple[PyTree, dict]:
        following = self._next(params, state, fold_name(rng, "next"), batch)
        shift, metrics = batch.Rn, {}
        if self.policy_regularizer is not None:
            term, metrics = self.policy_regularizer.target_term(
                params["reg"], params["reg_hparams"], state["reg"], fold_name(rng, "regularizer"), batch
            )
            shift = shift - term
        return self._estimate.backup(following, shift, batch.In), metrics

    # ------------------------------------------------------------------ the loss

    def _context(self) -> PyTree:
        trained = self._trained
        exported = {
            name: _map_functions(f, lambda part: part.export_weights(trained)) for name, f in self._functions().items()
        }
        regularizer = self.policy_regularizer
        if regularizer is None:
            return exported, None, self._numbers()
        return exported, (regularizer.f.export_weights(trained), regularizer.hyperparams), self._numbers()

    def _numbers(self) -> dict[str, Any]:
        """Coefficients of the rule that may change between steps."""
        return {}

    def _resolve(self, context: PyTree, weights: tuple[Any, Any]) -> tuple[dict, dict]:
        """``target_params`` and ``target_function_state`` inside the trace."""
        exported, regularizer, numbers = context
        trained, params, state = self._trained, dict(numbers), {}
        for name, f in self._functions().items():
            resolved = _map_functions(f, lambda part, e: part.resolve_weights(e, trained, weights), exported[name])
            params[name] = _map_pairs(f, resolved, 0)
            state[name] = _map_pairs(f, resolved, 1)
        if self.policy_regularizer is not None:
            own, hyperparams = regularizer
            params["reg"], state["reg"] = self.policy_regularizer.f.resolve_weights(own, trained, weights)
            params["reg_hparams"] = hyperparams
        return params, state

    def _loss(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        weights = jax.lax.stop_gradient((params, function_state))
        target_params, target_state = self._resolve(context, weights)
        G, metrics = self._target_and_metrics(target_params, target_state, fold_name(rng, "target"), batch)
        G = jax.lax.stop_gradient(G)
        rng_predict = fold_name(rng, "predict")
        output, function_state = self._predict(self._trained, (params, function_state), rng_predict, batch, True)
        W = self._sample_weights(batch)
        loss = self._estimate.loss(self._loss_function, G, output, W)
        targ_weights = self._target_weights(target_params, target_state)
        at_target, _ = self._predict(self._first_target, targ_weights, rng_predict, batch, False)
        td_error, td_error_targ = self._errors(*jax.lax.stop_gradient((G, output, at_target)))
        metrics = {
            f"{self._name}/loss": loss,
            f"{self._name}/td_error": jnp.mean(W * td_error),
            f"{self._name}/td_error_targ": jnp.mean(td_error_targ),
            **{f"{self._name}/{key}": value for key, value in metrics.items()},
        }
        return loss, LossOutput(function_state, metrics, td_error)

    def _sample_weights(self, batch: TransitionBatch) -> Float[Array, " batch"]:
        return clip_weights(batch.W, self.weight_clip)

    @abstractmethod
    def _target_weights(self, params: dict, state: dict) -> tuple[Any, Any]:
        """The weights of the (first) target function among the resolved ones."""

    def _errors(self, G: PyTree, output: PyTree, at_target: PyTree) -> tuple[Float[Array, " batch"], Any]:
        estimate, gradient = self._estimate, jax.grad(self._loss_function, argnums=1)
        target, predicted = estimate.transformed_mean(G), estimate.transformed_mean(output)
        td_error = -predicted.shape[0] * gradient(target, predicted)
        return td_error, -gradient(predicted, estimate.transformed_mean(at_target))

    # ------------------------------------------------------------------ the shell

    def _encode(self, transition_batch: Any) -> TransitionBatch:
        return self._encoder(transition_batch)

    def update(self, transition_batch: Any, return_td_error: bool = False) -> Any:
        """Train in place on one batch: the metrics, or ``(metrics, td_error)``; all on the device.

        The TD error ``[batch]`` is minus the batch size times the gradient of the unweighted loss in the prediction,
        taken before the step: ``G - prediction`` for ``mse``, clipped to [-1, 1] for the default ``huber``; positive
        where the prediction is too low. ``plain_td_error`` is never clipped.

        Raises:
            ValueError: the batch holds NaN, an action outside the space, or leaves that disagree.
            NonFiniteError: the step before had gradients that are not finite; it was left out.
        """
        metrics, td_error = self._update(transition_batch)
        return (metrics, td_error) if return_td_error else metrics

    def grads_and_metrics(self, transition_batch: Any) -> tuple[PyTree, PyTree, Mapping[str, Any], Any]:
        """``(grads, function_state, metrics, td_error)`` of a batch; nothing is trained."""
        grads, output = self._gradients(transition_batch)
        return grads, output.function_state, output.metrics, output.per_sample

    def td_error(self, transition_batch: Any) -> Float[Array, " batch"]:
        """The TD error as ``update`` defines it."""
        return self._report(transition_batch)[0]

    def plain_td_error(self, transition_batch: Any) -> Float[Array, " batch"]:
        """``G - prediction`` in transformed space, whatever the loss: for advantages and priorities."""
        return self._report(transition_batch)[1]

    def _report(self, transition_batch: Any) -> tuple:
        self._raise_if_not_finite()
        batch, context = self._encode(transition_batch), self._context()
        weights = self._trained._params, self._trained._function_state
        result, self._key = self._jit("td_errors", self._td_errors)(*weights, self._key, context, batch)
        return result

    def _td_errors(self, params: Any, function_state: Any, key: Key, context: Any, batch: Any) -> tuple:
        key, rng = jax.random.split(key)
        weights = params, function_state
        target_params, target_state = self._resolve(context, weights)
        G = self.target_func(target_params, target_state, fold_name(rng, "target"), batch)
        output, _ = self._predict(self._trained, weights, fold_name(rng, "predict"), batch, True)
        estimate = self._estimate
        plain = estimate.transformed_mean(G) - estimate.transformed_mean(output)
        return (self._errors(G, output, output)[0], plain), key

    @property
    def loss_function(self) -> LossFunction:
        """``(y_true, y_pred, w=None) -> scalar``; assigning another takes effect with the next call."""
        return self._loss_function

    @loss_function.setter
    def loss_function(self, loss_function: LossFunction) -> None:
        self._loss_function = loss_function
        self._jitted.clear()


def check_regularizer(who: str, regularizer: Any) -> None:
    """Raise a ``TypeError`` unless it is ``None`` or a regularizer of a policy."""
    if regularizer is None:
        return
    if not isinstance(regularizer, Regularizer):
        raise TypeError(f"{who}: the regularizer must be a Regularizer; got {type(regularizer).__name__}.")
    if not is_policy(regularizer.f):
        raise TypeError(f"{who}: the regularizer must be one of a policy; its f is a {type(regularizer.f).__name__}.")


def _map_functions(f: Any, fn: Callable, *others: Any) -> Any:
    """``fn`` of a function, or a list of results for a list of functions."""
    if isinstance(f, list):
        return [fn(part, *rest) for part, *rest in zip(f, *others, strict=True)]
    return fn(f, *others)


def _map_pairs(f: Any, pairs: Any, index: int) -> Any:
    return [pair[index] for pair in pairs] if isinstance(f, list) else pairs[index]
