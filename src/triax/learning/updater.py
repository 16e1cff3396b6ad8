"""The shell around a learner: it holds an optimizer state and trains one function in place."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from jaxtyping import Array, PyTree

from triax.core.errors import NonFiniteError
from triax.core.keys import Key, fold_name, make_key, seed_or_entropy
from triax.core.trees import copy_arrays, describe_difference
from triax.functions import Approximator
from triax.learning.learner import Learner, LossOutput, make_learner

DEFAULT_LEARNING_RATE = 1e-3


class Updater(ABC):
    """Trains one approximator on batches. Subclasses give the loss; everything else is here.

    Each public method makes one jitted call. A step whose gradients are not finite changes nothing; since nothing
    waits for the device, the ``NonFiniteError`` that tells so comes with the next call of any method.
    """

    def __init__(self, trained: Approximator, optimizer: optax.GradientTransformation | None) -> None:
        self._trained: Any = trained
        self._optimizer = optimizer or optax.adam(DEFAULT_LEARNING_RATE)
        self._optimizer_state = self._optimizer.init(trained._params)
        self._optimizer_state_exposed = True
        self._num_steps = 0
        self._pending: Array | None = None
        self._jitted: dict[str, Callable] = {}
        self.random_seed = trained.random_seed

    # ------------------------------------------------------------------ what a rule declares

    @abstractmethod
    def _loss(self, params: Any, function_state: Any, rng: Key, context: Any, batch: Any) -> tuple:
        """``(loss, LossOutput)``; traced. It must not read numbers from ``self``: those come in ``context``."""

    @abstractmethod
    def _context(self) -> PyTree:
        """What the loss reads besides the trained weights: other weights, coefficients."""

    @abstractmethod
    def _encode(self, transition_batch: Any) -> Any:
        """The checked batch as the traced loss takes it; NumPy leaves of fixed dtypes."""

    # ------------------------------------------------------------------ the optimizer

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimizer. A new one must have a state of the same structure; the state is kept.

        To change a learning rate without recompilation use a schedule or ``optax.inject_hyperparams``.

        Raises:
            AttributeError: the new optimizer's state has another structure.
        """
        return self._optimizer

    @optimizer.setter
    def optimizer(self, optimizer: optax.GradientTransformation) -> None:
        state = jax.eval_shape(optimizer.init, self._trained._params)
        self._check_state("optimizer", state)
        self._optimizer = optimizer
        self._jitted.clear()

    @property
    def optimizer_state(self) -> PyTree:
        """The optimizer's state; assigning checks structure, shapes and dtypes (``AttributeError``)."""
        self._optimizer_state_exposed = True
        return self._optimizer_state

    @optimizer_state.setter
    def optimizer_state(self, optimizer_state: PyTree) -> None:
        self._check_state("optimizer_state", optimizer_state)
        self._optimizer_state, self._optimizer_state_exposed = optimizer_state, True

    def _check_state(self, name: str, found: PyTree) -> None:
        difference = describe_difference(self._optimizer_state, found)
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
        self._key = fold_name(make_key(self._random_seed), self._name)

    @property
    def rng(self) -> Key:
        """A fresh key: each read gives another one."""
        self._key, rng = jax.random.split(self._key)
        return rng

    # ------------------------------------------------------------------ steps

    def _update(self, transition_batch: Any) -> tuple[dict[str, Any], Any]:
        """One step in place: ``(metrics, per-sample report)``, on the device."""
        self._raise_if_not_finite()
        batch, context = self._encode(transition_batch), self._context()
        call = self._jit("step", self._keyed_step, donate_argnums=(0, 1, 2, 3))
        params, function_state = self._trained.take_weights()
        step, self._key = call(params, function_state, self._take_optimizer_state(), self._key, context, batch)
        self._trained.put_weights(step.params, step.function_state)
        self._optimizer_state = step.optimizer_state
        self._stepped(step.finite)
        return step.metrics, step.per_sample

    def _gradients(self, transition_batch: Any) -> tuple[PyTree, LossOutput]:
        """Gradients and report of a batch; nothing is changed but the key."""
        self._raise_if_not_finite()
        batch, context = self._encode(transition_batch), self._context()
        weights = self._trained._params, self._trained._function_state
        call = self._jit("gradients", self._keyed_gradients)
        (grads, output), self._key = call(*weights, self._key, context, batch)
        return grads, output

    def apply_grads(self, grads: PyTree, function_state: PyTree) -> None:
        """An optimizer step with gradients computed elsewhere, and the new function state.

        Args:
            grads: a pytree like the ``params`` of the trained function.
            function_state: a pytree like its ``function_state``.

        Raises:
            TypeError: a tree does not fit; the message names the leaves.
        """
        self._raise_if_not_finite()
        for name, expected, found in (
            ("grads", self._trained._params, grads),
            ("function_state", self._trained._function_state, function_state),
        ):
            difference = describe_difference(expected, found)
            if difference is not None:
                raise TypeError(f"{self._name}.apply_grads: {name} does not fit: {difference}")
        params, old_state = self._trained.take_weights()
        call = self._jit("apply", self._learner.apply, donate_argnums=(0, 1, 2))
        *new, self._optimizer_state, finite = call(
            params, old_state, self._take_optimizer_state(), grads, function_state
        )
        self._trained.put_weights(*new)
        self._trained._exposed = True  # the given function state may come back as it is
        self._stepped(finite)

    def _take_optimizer_state(self) -> PyTree:
        if self._optimizer_state_exposed:
            self._optimizer_state = copy_arrays(self._optimizer_state)
            self._optimizer_state_exposed = False
        return self._optimizer_state

    @property
    def _learner(self) -> Learner:
        return make_learner(self._loss, self._optimizer, prefix=self._name)

    def _jit(self, name: str, function: Callable, **options: Any) -> Callable:
        """The jitted ``function``, made once; forgotten when the optimizer or the loss function changes."""
        if name not in self._jitted:
            self._jitted[name] = jax.jit(function, **options)
        return self._jitted[name]

    def _keyed_step(
        self, params: Any, function_state: Any, optimizer_state: Any, key: Key, context: Any, batch: Any
    ) -> tuple:
        key, rng = jax.random.split(key)
        return self._learner.step(params, function_state, optimizer_state, rng, context, batch), key

    def _keyed_gradients(self, params: Any, function_state: Any, key: Key, context: Any, batch: Any) -> tuple:
        key, rng = jax.random.split(key)
        return self._learner.gradients(params, function_state, rng, context, batch), key

    # ------------------------------------------------------------------ non-finite steps

    def _stepped(self, finite: Array) -> None:
        self._num_steps += 1
        self._pending = finite

    def _raise_if_not_finite(self) -> None:
        if self._pending is None:
            return
        finite, self._pending = np.asarray(self._pending), None
        if finite.all():
            return
        paths, _ = jax.tree_util.tree_flatten_with_path(self._trained._params)
        leaves = [jax.tree_util.keystr(path) for (path, _), ok in zip(paths, finite, strict=True) if not ok]
        raise NonFiniteError(
            f"{self._name}: step {self._num_steps} had gradients that are not finite, in params"
            f"{', params'.join(leaves)}. The step was left out: weights and optimizer state are as before."
            " Look for NaN or huge numbers in weights, rewards and the loss; a smaller learning rate or"
            " optax.clip_by_global_norm may help."
        )

    @property
    def _name(self) -> str:
        return type(self).__name__
