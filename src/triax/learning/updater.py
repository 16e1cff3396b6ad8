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

from triax.core.errors import LostWeightsError, NonFiniteError
from triax.core.keys import Draw, Key, KeyStream, fold_name, make_key, seed_or_entropy
from triax.core.pickling import refuse_pickle
from triax.core.sealed import Sealed
from triax.core.tree_differences import named_leaves
from triax.core.trees import any_deleted, copy_arrays, describe_difference, strongly_typed
from triax.functions import Approximator
from triax.learning.batches import EncodedBatch, check_weight_clip
from triax.learning.learner import Learner, LossOutput, make_learner
from triax.learning.printing import describe_optimizer, describe_trained

DEFAULT_LEARNING_RATE = 1e-3

U = TypeVar("U", bound="Updater")


class Updater(Sealed):
    """Trains one approximator on batches. Subclasses give the loss; everything else is here.

    Each public method makes one jitted call. A step whose gradients are not finite changes nothing; since nothing
    waits for the device, the ``NonFiniteError`` that tells so comes with the next call of any method, or of
    ``raise_if_not_finite``.

    The functions that a rule works with are fixed; their weights and all numbers may change at any time.

    A step takes over the memory of the weights in training. If it fails while it runs (out of memory, an error in a
    callback, a second Ctrl-C), they are lost: a ``LostWeightsError`` says so, and assigning ``params`` and
    ``function_state`` of the function and ``optimizer_state`` of the rule from a checkpoint makes both whole again.
    ``triax.runs.CleanInterrupt`` lets Ctrl-C wait for the end of a step.

    ``copy.copy(rule)`` trains the same function with an optimizer state and keys of its own, ``copy.deepcopy(rule)``
    trains copies of all its functions.
    """

    _trained: Any

    def __init__(self, trained: Approximator, optimizer: optax.GradientTransformation | None) -> None:
        self._trained = trained
        self._optimizer = optax.adam(DEFAULT_LEARNING_RATE) if optimizer is None else self._checked(optimizer)
        self._optimizer_state = copy_arrays(self.learner.init(trained._params))
        self._optimizer_state_like = jax.eval_shape(lambda: self._optimizer_state)
        self._optimizer_state_exposed = False
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
        context = self._context()
        places = self._places(context)
        for name, part in parts.items():
            place, key = places.get(name, (None, None))
            if place is None or place[key] is None:
                known = sorted(name for name, (place, key) in places.items() if place[key] is not None)
                raise TypeError(f"{self._name}.context_with: must name parts among {known}; got {name!r}.")
            difference = describe_difference(place[key], part, name)
            if difference is not None:
                raise TypeError(f"{self._name}.context_with: {name} does not fit: {difference}")
            place[key] = part
        return context

    def _places(self, context: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
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
        self._check_state("optimizer", state)
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
        self._optimizer_state_exposed = True
        return self._optimizer_state

    @optimizer_state.setter
    def optimizer_state(self, optimizer_state: PyTree) -> None:
        self._optimizer_state = self._own_state(optimizer_state)
        self._optimizer_state_exposed = False

    def _take_optimizer_state(self) -> PyTree:
        """The state in buffers that nobody else holds, with what a user may have written into it."""
        if self._optimizer_state_exposed:
            self._optimizer_state = self._own_state(self._optimizer_state)
            self._optimizer_state_exposed = False
        return self._optimizer_state

    def _own_state(self, state: PyTree) -> PyTree:
        if jax.tree.structure(state) == jax.tree.structure(self._optimizer_state_like):
            state = jax.tree.map(_typed_like, state, self._optimizer_state_like)
        self._check_state("optimizer_state", state)
        return copy_arrays(state)

    def _check_state(self, name: str, found: PyTree) -> None:
        difference = describe_difference(self._optimizer_state_like, found, "state")
        if difference is not None:
            raise AttributeError(f"{self._name}.{name}: its state does not fit the present one: {difference}")

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

    def _update(self, transition_batch: Any) -> tuple[dict[str, Any], Any]:
        """One step in place: ``(metrics, per-sample report)``, on the device."""
        batch, context = self._encode(transition_batch), self._context()
        self.raise_if_not_finite()  # waits for the last step, which may have run meanwhile
        call = self._jit("step", lambda: partial(_unpacked, self.learner.step), donate_argnums=(1, 2, 3))
        try:
            params, function_state = self._trained.take_weights()
            step = call(self._keys.draw(), params, function_state, self._take_optimizer_state(), context, batch)
            self._trained.put_weights(step.params, step.function_state)
            self._optimizer_state = step.optimizer_state
        except BaseException as error:
            self._raise_if_lost(error)
            raise
        self._stepped(step.finite)
        return step.metrics, step.per_sample

    def _evaluate(self, name: str, function: Callable, transition_batch: Any) -> Any:
        """``function(params, function_state, rng, context, batch)`` in one jitted call; nothing is changed."""
        self.raise_if_not_finite()
        batch, context = self._encode(transition_batch), self._context()
        call = self._jit(name, lambda: partial(_unpacked, function))
        try:
            return call(self._keys.draw(), self._trained._params, self._trained._function_state, context, batch)
        except RuntimeError as error:
            self._raise_if_lost(error)
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
        call = self._jit("apply", lambda: self.learner.apply, donate_argnums=(0, 1, 2))
        try:
            weights = self._trained.take_weights()
            *weights, self._optimizer_state, finite = call(
                *weights, self._take_optimizer_state(), grads, function_state
            )
            self._trained.put_weights(*weights)
        except BaseException as error:
            self._raise_if_lost(error)
            raise
        self._stepped(finite)

    def _jit(self, name: str, make: Callable[[], Callable], **options: Any) -> Callable:
        """The jitted function, made once; forgotten when the optimizer or the loss function changes."""
        if name not in self._jitted:
            self._jitted[name] = jax.jit(make(), **options)
        return self._jitted[name]

    # ------------------------------------------------------------------ non-finite steps

    def _stepped(self, finite: Array) -> None:
        self._num_steps += 1
        self._pending = finite

    def raise_if_not_finite(self) -> None:
        """Wait for the last step and raise a ``NonFiniteError`` if it was left out; every method calls this first."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        try:
            finite = np.asarray(pending).tolist()
        except Exception as error:  # of the step, which ran meanwhile
            raise self._lost(error) from error
        if all(finite):
            return
        names = [
            *named_leaves(self._trained._params, "params"),
            "the new weights",
            *named_leaves(self._trained._function_state, "function_state"),
        ]
        blamed = ", ".join(name for name, ok in zip(names, finite, strict=True) if not ok)
        raise NonFiniteError(
            f"{self._name}: step {self._num_steps} had gradients or updates that are not finite, or too large to be"
            f" squared, in {blamed}. The step was left out: weights and optimizer state are as before."
            " Look for NaN or huge numbers in weights, rewards and the loss; a smaller learning rate or"
            " optax.clip_by_global_norm may help."
        )

    # ------------------------------------------------------------------ steps that fail

    def _raise_if_lost(self, error: BaseException) -> None:
        """Say so if ``error`` came after a step had taken the weights and before it gave new ones."""
        if not any_deleted((self._trained._params, self._trained._function_state, self._optimizer_state)):
            return
        if isinstance(error, Exception):
            raise self._lost(error) from error
        error.add_note(str(self._lost(error)))  # KeyboardInterrupt stays what it is

    def _lost(self, error: BaseException) -> LostWeightsError:
        function = type(self._trained).__name__
        return LostWeightsError(
            f"{self._name}: the weights of {function} and the optimizer state are lost: a step failed"
            f" ({type(error).__name__}) while it held them. Assign params and function_state of the {function} and"
            " optimizer_state of the rule from a checkpoint."
        )

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
        twin._optimizer_state = copy_arrays(self._optimizer_state)
        twin._optimizer_state_exposed = False
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
            f"optimizer={describe_optimizer(self._optimizer_state_like)}",
            f"steps={self._num_steps}",
        ]

    @property
    def _name(self) -> str:
        return type(self).__name__


def _unpacked(function: Callable, draw: Draw, *args: Any) -> Any:
    """``function(*weights, rng, context, batch)`` from what a shell hands to a jitted call."""
    *weights, context, batch = args
    batch = jax.tree.map(lambda x: x.decode() if _is_encoded(x) else x, batch, is_leaf=_is_encoded)
    return function(*weights, jax.random.fold_in(*draw), context, batch)


def _is_encoded(x: Any) -> bool:
    return isinstance(x, EncodedBatch)


def _typed_like(leaf: Any, like: Any) -> Any:
    """Numbers that a user wrote into the state, in its dtype; weak types would compile anew."""
    if isinstance(leaf, jax.Array) and not getattr(leaf, "weak_type", False):  # arrays of keys have none
        return leaf
    return np.asarray(leaf, like.dtype)
