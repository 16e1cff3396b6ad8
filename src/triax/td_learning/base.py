"""What all TD rules share: the target, the loss against it, the errors and metrics that users read."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

from triax.core.keys import Key, fold_name
from triax.functions import is_stochastic
from triax.learning import BatchEncoder, LossOutput, Updater, clip_weights
from triax.learning.batches import EncodedBatch
from triax.learning.contexts import Places
from triax.learning.estimates import Estimate, estimate_of
from triax.learning.evaluation import TRAINED, Evaluated, check_memory, unfolded
from triax.learning.printing import describe_callable
from triax.losses.value_losses import huber
from triax.regularizers import Regularizer
from triax.reward_tracing import TransitionBatch
from triax.td_learning.checks import check_loss_function, check_regularizer

LossFunction = Callable[..., Float[Array, ""]]
"""``(y_true, y_pred, w=None) -> scalar``."""
Weights = tuple[Any, Any]
"""``(params, function_state)``."""


class TDRule(Updater):
    r"""A rule that moves a value function towards a bootstrapped target.

    .. math:: G = f(R_n + I_n\, (f^{-1}(\text{next value}) - \text{regularizer}))

    ``f`` is the function's value transform. No gradient flows into the target. For distributional functions the target
    is a distribution, and the loss cross-entropy or quantile Huber; they take no other loss, and ``loss_function`` is
    the default one, which shapes the TD error. The trained function runs in training mode, everything in the target in
    evaluation mode: running statistics of the trained one take in the states of each batch once, after its own pass.
    """

    _reads_next_action = False

    def __init__(
        self,
        trained: Any,
        target: Any,
        optimizer: optax.GradientTransformation | None,
        loss_function: LossFunction | None,
        policy_regularizer: Regularizer | None,
    ) -> None:
        check_regularizer(self._name, policy_regularizer, trained)
        if loss_function is not None:
            check_loss_function(self._name, loss_function, trained)
        self._target = trained if target is None else target
        self._policy_regularizer = policy_regularizer
        self._loss_function = loss_function or huber
        self._estimate = estimate_of(trained)
        self._encoder = BatchEncoder(
            self._name,
            trained.observation_space,
            getattr(trained, "action_space", None),
            next_action=self._reads_next_action,
            recorded_steps=() if policy_regularizer is None else policy_regularizer.recorded_steps,
        )
        super().__init__(trained, optimizer)

    # ------------------------------------------------------------------ what a rule declares

    @abstractmethod
    def _functions(self) -> dict[str, Any]:
        """The functions in the target under the names of ``target_params``; lists for the clipped rules."""

    def _numbers(self) -> dict[str, Any]:
        """Coefficients of the rule that may change between steps, under the names of ``target_params``."""
        return {}

    @abstractmethod
    def _next(self, params: dict, state: dict, rng: Key, batch: TransitionBatch) -> PyTree:
        """The estimate at the next state, ready for ``Estimate.backup``."""

    @abstractmethod
    def _predict(self, name: str, f: Any, weights: Weights, rng: Key, batch: TransitionBatch) -> Evaluated:
        """``f``, in the role ``name``, on the batch's states (and actions); the trained one in training mode."""

    @abstractmethod
    def _target_at(self, params: dict, state: dict) -> tuple[str, Any, Weights]:
        """Role, function and resolved weights of the (first) target function."""

    def _is_known(self, batch: TransitionBatch) -> Bool[Array, " batch"] | None:
        """Which rows the batch tells enough about; ``None`` for all. Others weigh nothing, and have no error."""
        return None

    # ------------------------------------------------------------------ the target

    @property
    def policy_regularizer(self) -> Regularizer | None:
        """The regularizer in the target; fixed, its coefficients are not."""
        return self._policy_regularizer

    @property
    def target_params(self) -> dict[str, Any]:
        """The parameters that the target reads: ``v``/``q``, ``v_targ``/``q_targ``, ``pi_targ``, ``reg``, ..."""
        named = {name: _map_functions(f, lambda part: part.params) for name, f in self._functions().items()}
        regularizer = self._policy_regularizer
        if regularizer is not None:
            named |= {"reg": regularizer.f.params, "reg_hparams": regularizer.hyperparams}
        return {**named, **self._numbers()}

    @property
    def target_function_state(self) -> dict[str, Any]:
        """The function states that the target reads, named as in ``target_params``."""
        named = {name: _map_functions(f, lambda part: part.function_state) for name, f in self._functions().items()}
        if self._policy_regularizer is not None:
            named["reg"] = self._policy_regularizer.f.function_state
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
        if self._policy_regularizer is not None:
            term, metrics = self._policy_regularizer.target_term(
                params["reg"], params["reg_hparams"], state["reg"], fold_name(rng, "regularizer"), batch
            )
            shift = shift - term
        return self._estimate.backup(following, shift, batch.In), metrics

    # ------------------------------------------------------------------ the loss

    def _context(self) -> dict[str, Any]:
        trained, regularizer = self._trained, self._policy_regularizer
        functions = {
            name: _map_functions(f, lambda part: part.export_weights(trained)) for name, f in self._functions().items()
        }
        regularizing = None
        if regularizer is not None:
            regularizing = [regularizer.f.export_weights(trained), regularizer.hyperparams]
        return {**super()._context(), "functions": functions, "regularizer": regularizing, "numbers": self._numbers()}

    def _places(self, context: dict[str, Any]) -> Places:
        places = {name: (context[kind], name) for kind in ("functions", "numbers") for name in context[kind]}
        regularizing = context["regularizer"]
        if regularizing is None:
            return places
        return {**places, "reg": (regularizing, 0), "reg_hparams": (regularizing, 1)}

    def _resolve(self, context: dict, weights: Weights) -> tuple[dict, dict]:
        """``target_params`` and ``target_function_state`` inside the trace."""
        trained, params, state = self._trained, dict(context["numbers"]), {}
        for name, f in self._functions().items():
            exported = context["functions"][name]
            resolved = _map_functions(f, lambda part, e: part.resolve_weights(e, trained, weights), exported)
            params[name] = _map_functions(resolved, lambda pair: pair[0])
            state[name] = _map_functions(resolved, lambda pair: pair[1])
        if self._policy_regularizer is not None:
            own, params["reg_hparams"] = context["regularizer"]
            params["reg"], state["reg"] = self._policy_regularizer.f.resolve_weights(own, trained, weights)
        return params, state

    def _loss(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        check_memory(batch, self._trained, TRAINED)  # before a target that may be the same function
        batch = self._weighted(batch, context)
        constants = self._resolve(context, jax.lax.stop_gradient((params, function_state)))
        G, metrics = self._target_and_metrics(*constants, fold_name(rng, "target"), batch)
        G = jax.lax.stop_gradient(G)
        rng_predict = fold_name(rng, "predict")
        weights = params, function_state
        output, function_state, regularization = self._predict(TRAINED, self._trained, weights, rng_predict, batch)
        loss = self._estimate.loss(self._loss_function, G, output, batch.W) + regularization
        constant = jax.lax.stop_gradient(output)
        td_error = self._td_error(G, constant, batch)
        metrics = {
            "loss": loss,
            "td_error": jnp.mean(batch.W * td_error),
            "td_error_targ": self._td_error_targ(constants, constant, rng_predict, batch),
            **metrics,
        }
        metrics = {f"{self._name}/{key}": value for key, value in metrics.items()}
        return loss, LossOutput(function_state, metrics, unfolded(td_error, batch))

    def _weighted(self, batch: TransitionBatch, context: dict) -> TransitionBatch:
        """The batch with the sample weights to use."""
        batch, known = clip_weights(batch, context["weight_clip"]), self._is_known(batch)
        if known is not None:
            batch = batch.copy()
            batch.W = jnp.where(known, batch.W, 0.0)
        return batch

    # ------------------------------------------------------------------ errors

    def _td_error(self, G: PyTree, output: PyTree, batch: TransitionBatch) -> Float[Array, " batch"]:
        target, predicted = map(self._estimate.transformed_mean, (G, output))
        error = -predicted.shape[0] * jax.grad(self._loss_function, argnums=1)(target, predicted)
        return self._masked(error, batch)

    def _masked(self, error: Float[Array, " batch"], batch: TransitionBatch) -> Float[Array, " batch"]:
        known = self._is_known(batch)
        return error if known is None else jnp.where(known, error, 0.0)

    def _td_error_targ(self, constants: tuple[dict, dict], output: PyTree, rng: Key, batch: TransitionBatch) -> Array:
        """How far the target network's value at the same state and action is from the prediction."""
        name, target, weights = self._target_at(*constants)
        output_targ = self._predict(name, target, weights, rng, batch).output
        at_target = self._in_own_units(estimate_of(target), output_targ)
        return jnp.mean(-jax.grad(self._loss_function, argnums=1)(self._estimate.transformed_mean(output), at_target))

    def _in_own_units(self, estimate: Estimate, output: PyTree) -> Float[Array, " batch"]:
        """Expectations by another function, transformed as those of the trained one."""
        if estimate.transform == self._estimate.transform:
            return estimate.transformed_mean(output)
        return self._estimate.transform.transform_func(estimate.mean(output))

    # ------------------------------------------------------------------ the shell

    def _encode(self, transition_batch: Any) -> EncodedBatch:
        return self._encoder(transition_batch)

    def update(self, transition_batch: Any, return_td_error: bool = False, *, soft_update: Any = None) -> Any:
        """Train in place on one batch: the metrics, or ``(metrics, td_error)``; all on the device.

        ``soft_update=(q_targ, tau)`` then moves a target network towards the trained function, as
        ``q_targ.soft_update(q, tau)`` would, in the same compiled call.

        The TD error ``[batch]`` is minus the batch size times the gradient of the unweighted loss in the prediction,
        taken before the step: ``G - prediction`` for ``mse``, clipped to [-1, 1] for the default ``huber``; positive
        where the prediction is too low. ``plain_td_error`` is never clipped.

        Metrics: ``<Class>/loss``, ``/td_error`` (the mean, weighted), ``/td_error_targ`` (as the TD error, between
        prediction and target network at the same state and action, over the batch size), ``/grads_max``,
        ``/grads_norm``, and those of the regularizer.

        Raises:
            ValueError: the batch holds NaN, an action outside the space, or leaves that disagree; ``tau`` is outside
                [0, 1].
            TypeError: ``soft_update`` is no such pair, or the target is of another class or form.
            NonFiniteError: the step before had gradients that are not finite; it was left out.
        """
        metrics, td_error = self._update(transition_batch, soft_update)
        return (metrics, td_error) if return_td_error else metrics

    def grads_and_metrics(self, transition_batch: Any) -> tuple[PyTree, PyTree, Mapping[str, Any], Any]:
        """``(grads, function_state, metrics, td_error)`` of a batch; nothing is trained."""
        grads, output = self._gradients(transition_batch)
        return grads, output.function_state, output.metrics, output.per_sample

    def td_error(self, transition_batch: Any) -> Float[Array, "*batch"]:
        """The TD error as ``update`` defines it; ``[time - burn_in, batch]`` for a trajectory."""
        return self._evaluate("td_errors", self._td_errors, transition_batch)[0]

    def plain_td_error(self, transition_batch: Any) -> Float[Array, "*batch"]:
        """``G - prediction`` in transformed space, whatever the loss: for advantages and priorities."""
        return self._evaluate("td_errors", self._td_errors, transition_batch)[1]

    def _td_errors(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        check_memory(batch, self._trained, TRAINED)  # before a target that may be the same function
        weights = params, function_state
        G = self.target_func(*self._resolve(context, weights), fold_name(rng, "target"), batch)
        output = self._predict(TRAINED, self._trained, weights, fold_name(rng, "predict"), batch).output
        plain = self._estimate.transformed_mean(G) - self._estimate.transformed_mean(output)
        return tuple(unfolded(error, batch) for error in (self._td_error(G, output, batch), self._masked(plain, batch)))

    def _facts(self) -> list[str]:
        facts = [*super()._facts(), *(f"{name}={float(number):g}" for name, number in self._numbers().items())]
        if not is_stochastic(self._trained):
            facts.append(f"loss_function={describe_callable(self._loss_function)}")
        regularizer = self._policy_regularizer
        return facts if regularizer is None else [*facts, f"policy_regularizer={regularizer}"]

    @property
    def loss_function(self) -> LossFunction:
        """``(y_true, y_pred, w=None) -> scalar``; assigning another takes effect with the next call.

        Raises:
            TypeError: it is no function, or a distributional function is trained, which has its own loss.
        """
        return self._loss_function

    @loss_function.setter
    def loss_function(self, loss_function: LossFunction) -> None:
        check_loss_function(self._name, loss_function, self._trained)
        self._loss_function = loss_function
        self._jitted.clear()


def _map_functions(f: Any, fn: Callable, *others: Any) -> Any:
    """``fn`` of a function, or a list of results for a list of functions."""
    if isinstance(f, list):
        return [fn(part, *rest) for part, *rest in zip(f, *others, strict=True)]
    return fn(f, *others)
