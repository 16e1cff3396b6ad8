"""The shell around a learner: it holds an optimizer state and trains one function in place."""

import copy
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PyTree

from triax.core.keys import Key, KeyStream, fold_name, make_key, seed_or_entropy
from triax.core.pickling import refuse_pickle
from triax.core.sealed import Sealed
from triax.core.trees import copy_arrays, describe_difference, strongly_typed
from triax.functions import Approximator
from triax.functions.weights_lock import WEIGHTS_LOCK
from triax.learning.batches import check_weight_clip
from triax.learning.contexts import Places, replace_parts
from triax.learning.failures import discard, lost_in_step, non_finite_step, raise_if_lost
from triax.learning.learner import Learner, LossOutput, Step, make_learner
from triax.learning.optimizer_state import OptimizerState
from triax.learning.printing import describe_optimizer, describe_trained
from triax.learning.shell_calls import applied, stepped, unpacked
from triax.learning.soft_updates import weights_to_move

DEFAULT_LEARNING_RATE = 1e-3

U = TypeVar("U", bound="Updater")


class Updater(Sealed):
    """Trains one approximator on batches. Subclasses give the loss; everything else is here.

    Each public method makes one jitted call. A step whose gradients are not finite changes nothing, whatever the loss
    is; since nothing waits for the device, the ``NonFiniteError`` that tells so comes with the next call of any
    method, or of ``raise_if_not_finite``.

    The functions that a rule works with are fixed; their weights and all numbers may change at any time.

    A step takes over the memory of the weights in training. If it fails while it runs (out of memory, an error in a
    callback, a second Ctrl-C), they are lost: a ``LostWeightsError`` says so, and assigning ``params`` and
    ``function_state`` of the function and ``optimizer_state`` of the rule from a checkpoint makes both whole again.
    ``triax.runs.CleanInterrupt`` lets Ctrl-C wait for the end of a step.

    Threads may share rules and functions: one lock makes each step, and each call of a function, whole. It does not
    make them faster, and which of two threads comes first is left to chance.

    ``copy.copy(rule)`` trains the same function with an optimizer state and keys of its own, ``copy.deepcopy(rule)``
    trains copies of all its functions.
    """

    _trained: Any

    def __init__(self, trained: Approximator, optimizer: optax.GradientTransformation | None) -> None:
        self._trained = trained
        self._optimizer = optax.adam(DEFAULT_LEARNING_RATE) if optimizer is None else self._checked(optimizer)
        self._optimizer_state = OptimizerState(self._name, self.learner.init(trained._params))
        self.weight_clip = (0.0, 10.0)
        self._num_steps = 0
        self._pending: Array | None = None
        self._jitted: dict[str, Callable] = {}
        self.random_seed = trained.random_seed

    # ------------------------------------------------------------------ what a rule declares

    @abstractmethod
    def _loss(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        """``(loss, LossOutput)``; traced. It must not read numbers from ``self``: those come in ``context``."""

    def _context(self) -> dict[str, Any]:
        """What the loss reads besides the trained weights: other weights, coefficients."""
        return {"weight_clip": self._weight_bounds}

    @abstractmethod
    def _encode(self, transition_batch: Any) -> Any:
        """The checked batch as the traced loss takes it; NumPy leaves of fixed dtypes."""

    # ------------------------------------------------------------------ the pure core

    @property
    def learner(self) -> Learner:
        """The rule as pure functions, for programs of your own: under ``jit``, ``vmap``, ``scan``.

        Batches are clean device arrays, contexts are made by ``context``.
        """
        return make_learner(self._loss, self._optimizer, prefix=self._name)

    def context(self) -> PyTree:
        """A copy of what the loss reads at present besides the trained weights, which it leaves out."""
        with WEIGHTS_LOCK:
            return copy_arrays(self._context())

    def context_with(self, **parts: Any) -> PyTree:
        """The context with other weights and numbers than those at present: for agents that keep theirs in a pytree.

        Traceable; nothing is copied. Weights are ``(params, function_state)``; of a policy made from a q-function
        ``(number, weights of the q-function)``; lists of them where the rule works with lists.

        Args:
            parts: by name as in ``target_params`` or ``hyperparams``: functions, numbers; ``reg`` and
                ``reg_hparams`` for the regularizer. What is not named stays as it is.

        Raises:
            TypeError: the rule reads no such part, or it is the function in training, or it does not fit.
        """
        with WEIGHTS_LOCK:
            context = self._context()
        replace_parts(self._name, self._places(context), parts)
        return context

    def _places(self, context: dict[str, Any]) -> Places:
        """Where each part is in the context, which is the caller's own: a container and a key."""
        return {}

    @property
    def weight_clip(self) -> tuple[float, float] | None:
        """Bounds of the sample weights ``W`` of a batch, at first ``(0, 10)``; ``None`` leaves weights as they are."""
        return self._weight_clip

    @weight_clip.setter
    def weight_clip(self, bounds: tuple[float, float] | None) -> None:
        self._weight_clip = check_weight_clip(self._name, bounds)
        self._weight_bounds = None if bounds is None else jnp.array(self._weight_clip, jnp.float32)

    # ------------------------------------------------------------------ the optimizer

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimizer. A new one must have a state of the same structure; the state is kept.

        To change a learning rate without recompilation use a schedule, or ``optax.inject_hyperparams`` and
        ``rule.optimizer_state.hyperparams["learning_rate"] = 1e-4``.

        Raises:
            AttributeError: the new optimizer's state has another structure.
        """
        return self._optimizer

    @optimizer.setter
    def optimizer(self, optimizer: optax.GradientTransformation) -> None:
        state = jax.eval_shape(self._checked(optimizer).init, self._trained._params)
        self._optimizer_state.check("optimizer", state)
        self._optimizer = optimizer
        self._jitted.clear()

    def _checked(self, optimizer: Any) -> optax.GradientTransformation:
        if isinstance(optimizer, optax.GradientTransformation):
            return optimizer
        raise TypeError(
            f"{self._name}: optimizer must be an optax.GradientTransformation; got {type(optimizer).__name__}."
            " Try optax.adam(learning_rate)."
        )

    @property
    def optimizer_state(self) -> PyTree:
        """The optimizer's state; assigning checks structure, shapes and dtypes (``AttributeError``)."""
        return self._optimizer_state.read()

    @optimizer_state.setter
    def optimizer_state(self, optimizer_state: PyTree) -> None:
        self._optimizer_state.write(optimizer_state)

    # ------------------------------------------------------------------ randomness

    @property
    def random_seed(self) -> int:
        """The seed of the rule's own stream of keys; at first that of the trained function."""
        return self._random_seed

    @random_seed.setter
    def random_seed(self, random_seed: int | None) -> None:
        self._random_seed = seed_or_entropy(random_seed)
        self._keys = KeyStream(fold_name(make_key(self._random_seed), self._name))

    @property
    def rng(self) -> Key:
        """A fresh key: each read gives another one."""
        return self._keys.key()

    @property
    def key_stream(self) -> KeyStream:
        """The stream that steps draw from; its ``position`` is part of a state to resume from."""
        return self._keys

    # ------------------------------------------------------------------ steps

    def _update(self, transition_batch: Any, soft_update: Any = None) -> tuple[dict[str, Any], Any]:
        """One step in place, and one of a target towards what it leaves: ``(metrics, per-sample report)``."""
        batch = self._encode(transition_batch)
        call = self._jit("step", lambda: partial(stepped, self.learner.step), donate_argnums=(1, 2, 3))
        with WEIGHTS_LOCK:
            context, following = self._context(), weights_to_move(self._name, soft_update, self._trained)
            step, moved = self._train(lambda *held: call(self._keys.draw(), *held, context, batch, following), context)
            if soft_update is not None:
                soft_update[0].put_weights(*moved)
        return step.metrics, step.per_sample

    def _train(self, call: Callable[..., tuple[Step, Any]], context: PyTree = None) -> tuple[Step, Any]:
        """``call(params, function_state, optimizer_state)``, which takes them over; its step replaces them."""
        self.raise_if_not_finite()  # waits for the last step, which may have run meanwhile
        try:
            step, more = call(*self._trained.take_weights(), self._optimizer_state.take())
            self._trained.put_weights(step.params, step.function_state)
            self._optimizer_state.put(step.optimizer_state)
        except BaseException as error:
            self._raise_if_lost(error, context)
            raise
        self._num_steps += 1
        self._pending = step.finite
        return step, more

    def _evaluate(self, name: str, function: Callable, transition_batch: Any) -> Any:
        """``function(params, function_state, rng, context, batch)`` in one jitted call; nothing is changed."""
        return self._evaluate_encoded(name, function, self._encode(transition_batch))

    def _evaluate_encoded(self, name: str, function: Callable, batch: Any) -> Any:
        call, trained = self._jit(name, lambda: partial(unpacked, function)), self._trained
        with WEIGHTS_LOCK:
            self.raise_if_not_finite()
            context = self._context()
            try:
                return call(self._keys.draw(), trained._params, trained._function_state, context, batch)
            except RuntimeError as error:
                self._raise_if_lost(error, context)
                raise

    def _gradients(self, transition_batch: Any) -> tuple[PyTree, LossOutput]:
        """Gradients and report of a batch; nothing is trained."""

        def gradients(*args: Any) -> tuple[PyTree, LossOutput]:
            grads, output = self.learner.gradients(*args)
            # What a jitted call returns unchanged is its input, which the next step will donate.
            state = jax.tree.map(jnp.copy, output.function_state)
            return grads, output._replace(function_state=state)

        return self._evaluate("gradients", gradients, transition_batch)

    def apply_grads(self, grads: PyTree, function_state: PyTree) -> None:
        """An optimizer step with gradients computed elsewhere, and the new function state.

        Args:
            grads: a pytree like the ``params`` of the trained function.
            function_state: a pytree like its ``function_state``.

        Raises:
            TypeError: a tree does not fit; the message names the leaves.
            NonFiniteError: the step before had gradients that are not finite; it was left out.
        """
        self.raise_if_not_finite()
        for name, expected, found in (
            ("grads", self._trained._params, grads),
            ("function_state", self._trained._function_state, function_state),
        ):
            difference = describe_difference(expected, found, name)
            if difference is not None:
                raise TypeError(f"{self._name}.apply_grads: {name} does not fit: {difference}")
        grads, function_state = strongly_typed((grads, function_state))
        call = self._jit("apply", lambda: partial(applied, self.learner.apply), donate_argnums=(0, 1, 2))
        with WEIGHTS_LOCK:
            self._train(lambda *held: call(*held, grads, function_state))

    def _jit(self, name: str, make: Callable[[], Callable], **options: Any) -> Callable:
        """The jitted function, made once; forgotten when the optimizer or the loss function changes."""
        if name not in self._jitted:
            self._jitted[name] = jax.jit(make(), **options)
        return self._jitted[name]

    # ------------------------------------------------------------------ non-finite steps

    def raise_if_not_finite(self) -> None:
        """Wait for the last step and raise a ``NonFiniteError`` if it was left out; every method calls this first."""
        if self._pending is None:
            return
        with WEIGHTS_LOCK:
            pending, self._pending = self._pending, None
            try:
                finite = [] if pending is None else np.asarray(pending).tolist()
            except Exception as error:  # of the step, which ran meanwhile
                discard(self._held())
                raise lost_in_step(self._name, self._trained, error) from error
            if not all(finite):
                f = self._trained
                raise non_finite_step(self._name, self._num_steps, finite, f._params, f._function_state)

    def _held(self) -> PyTree:
        """What steps replace."""
        return self._trained._params, self._trained._function_state, self._optimizer_state.value

    def _raise_if_lost(self, error: BaseException, context: PyTree) -> None:
        raise_if_lost(self._name, self._trained, self._held(), context, error)

    # ------------------------------------------------------------------ copies, printing

    def __copy__(self: U) -> U:
        return self._twin(dict(self.__dict__))

    def __deepcopy__(self: U, memo: dict) -> U:
        replaced = {name: self.__dict__[name] for name in ("_optimizer_state", "_keys", "_pending", "_jitted")}
        kept = {name: value for name, value in self.__dict__.items() if name not in replaced}
        return self._twin({**copy.deepcopy(kept, memo), **replaced})

    def _twin(self: U, attributes: dict[str, Any]) -> U:
        """A rule with these attributes that shares nothing that a step replaces or a key is drawn from."""
        twin = object.__new__(type(self))
        vars(twin).update(attributes)
        with WEIGHTS_LOCK:
            twin._optimizer_state = self._optimizer_state.copy()
        twin._keys = KeyStream(fold_name(self.rng, "copy"))
        twin._pending, twin._jitted = None, {}
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        return refuse_pickle(
            self, protocol, "Save the params of its functions and its optimizer_state, for example with triax.runs."
        )

    def __repr__(self) -> str:
        return f"{self._name}({', '.join(self._facts())})"

    def _facts(self) -> list[str]:
        return [
            describe_trained(self._trained),
            f"optimizer={describe_optimizer(self._optimizer_state.like)}",
            f"steps={self._num_steps}",
        ]

    @property
    def _name(self) -> str:
        return type(self).__name__
