"""What all function approximators share: weights, function state, a key, copies and averages."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import jax
from flax import nnx
from jaxtyping import PyTree

from triax.core.errors import LostWeightsError
from triax.core.keys import Key, KeyStream, fold_name, make_key, seed_or_entropy
from triax.core.modules import strong_copy
from triax.core.pickling import refuse_pickle
from triax.core.sealed import Sealed
from triax.core.trees import any_deleted, copy_arrays, describe_difference, strongly_typed
from triax.functions.carries import checked_carry
from triax.functions.description import count_parameters, describe_function, describe_leaves
from triax.functions.evaluate import without_carry
from triax.functions.inputs import InputSpec
from triax.functions.interpolation import Number, interpolate
from triax.functions.lift import Carry, Lifted, Unrolled, lift
from triax.functions.outputs import Output, abstract
from triax.functions.weights_lock import WEIGHTS_LOCK

CHECK_BATCH_SIZE = 8
"""More than one, to tell the batch axis from axes of size one in what ``func`` returns."""
WARM_UP_BATCH_SIZE = 64

A = TypeVar("A", bound="Approximator")


class Approximator(Sealed):
    """A function with weights: the shell that a Python loop holds around a pure function.

    ``params`` and ``function_state`` may be read and assigned; an assigned tree must agree in structure, shapes and
    dtypes, and is copied. Arrays that were handed out are never donated, so that references to them stay good.

    Haiku's moving averages start from one training-mode pass over examples of the spaces, so that BatchNorm is usable
    at once; a Flax module starts with the variables that it has.
    """

    made_of = frozenset(
        ("observation_space", "action_space", "observation_preprocessor", "observation_postprocessor")
        + ("action_preprocessor", "value_transform", "value_range", "proba_dist", "decoding", "q", "v", "p", "r")
    )

    kinds: ClassVar[frozenset[str]] = frozenset()
    """What it is, for the predicates ``is_vfunction``, ``is_policy``, ..."""

    observation_space: Any
    _lifted: Lifted
    _has_memory: bool
    _carry_structure: Any = jax.tree.structure(())
    _random_seed: int
    _keys: KeyStream

    def _set_up(self, func: Any, inputs: InputSpec, output: Output, random_seed: int | None) -> None:
        """Turn ``func`` into a pure function, initialise it, and check one forward pass."""
        owner = type(self).__name__
        self.random_seed = random_seed
        key = make_key(self.random_seed)
        init_key = fold_name(key, "init")
        self._lifted = lift(func, owner=owner, accepts=inputs.accepts, key=init_key)
        names = self._lifted.inputs
        example = () if self._lifted.module else inputs.example(names, 1)  # a module has its weights already
        with inputs.noted_on_errors(owner, names):
            self._params, self._function_state = strong_copy(self._lifted.init(init_key, *example, True))
        self._exposed = False
        self._initial_carry = jax.jit(self._lifted.initial_carry, static_argnums=3)
        self._check_forward(inputs, output, key)
        self._warm_up(inputs, fold_name(key, "warm-up"))
        self._function = without_carry(self._lifted.forward, names, owner, self._has_memory)

    def _check_forward(self, inputs: InputSpec, output: Output, key: Key) -> None:
        """One abstract pass: the form of the carry and of what ``func`` returns."""
        names, returned, carry = self._lifted.inputs, None, None

        def run(*weights_and_key: Any) -> None:
            nonlocal returned, carry
            carry = self._lifted.initial_carry(*weights_and_key, CHECK_BATCH_SIZE)
            example = inputs.example(names, CHECK_BATCH_SIZE)
            result, *_ = self._lifted.forward(*weights_and_key, carry, *example, True)
            returned, carry = abstract(result), abstract(carry)

        with inputs.noted_on_errors(type(self).__name__, names):
            jax.eval_shape(run, self._params, self._function_state, key)
        self._carry_structure = jax.tree.structure(carry)
        self._has_memory = bool(jax.tree.leaves(carry))
        output.check(type(self).__name__, returned, CHECK_BATCH_SIZE, inputs.per_action(names))

    def _warm_up(self, inputs: InputSpec, rng: Key) -> None:
        """Haiku's moving averages start at zero variance: one pass over many examples makes them usable."""
        if self._lifted.module is not None or not jax.tree.leaves(self._function_state):
            return
        example = inputs.example(self._lifted.inputs, WARM_UP_BATCH_SIZE)
        state = self._lifted.forward(self._params, self._function_state, rng, (), *example, True)[2]
        self._function_state = strong_copy(state)

    # ------------------------------------------------------------------ weights

    @property
    def params(self) -> Any:
        """The weights, a pytree; an assigned one must have its structure, shapes and dtypes (else ``TypeError``)."""
        return self._expose()[0]

    @params.setter
    def params(self, params: Any) -> None:
        self._check_same("params", self._params, params)
        params = copy_arrays(strongly_typed(params))
        with WEIGHTS_LOCK:
            self._params = params

    @property
    def function_state(self) -> Any:
        """Non-trainable variables such as running statistics; assigning checks as ``params`` does.

        Learning rules write it, once per update, from the batch's states (those of a burn-in do not count);
        calls such as ``pi(s)``, and functions in targets, only read it.
        """
        return self._expose()[1]

    @function_state.setter
    def function_state(self, function_state: Any) -> None:
        self._check_same("function_state", self._function_state, function_state)
        function_state = copy_arrays(strongly_typed(function_state))
        with WEIGHTS_LOCK:
            self._function_state = function_state

    def _expose(self) -> tuple[Any, Any]:
        """``(params, function_state)`` for the user: what is handed out is not donated."""
        with WEIGHTS_LOCK:
            self.raise_if_lost()
            self._exposed = True
            return self._params, self._function_state

    def raise_if_lost(self, cause: BaseException | None = None) -> None:
        """Raise a ``LostWeightsError`` if a learning step failed while it held the weights."""
        if any_deleted((self._params, self._function_state)):
            raise LostWeightsError(
                f"{type(self).__name__}: the weights are lost: a learning step failed while it held them."
                " Assign params and function_state from a checkpoint."
            ) from cause

    def _check_same(self, name: str, expected: Any, found: Any) -> None:
        difference = describe_difference(expected, found, name)
        if difference is not None:
            raise TypeError(f"{type(self).__name__}.{name}: the new value does not fit: {difference}")

    def take_weights(self) -> tuple[Any, Any]:
        """``(params, function_state)`` in buffers that nobody else holds, ready to be donated."""
        if self._exposed:
            self._params, self._function_state = copy_arrays((self._params, self._function_state))
            self._exposed = False
        return self._params, self._function_state

    def put_weights(self, params: Any, function_state: Any) -> None:
        """Store what a jitted call returned; unchecked, since it has the structure of what went in."""
        self._params, self._function_state = params, function_state
        self._exposed = False

    def export_weights(self, trained: Any) -> PyTree:
        """``(params, function_state)`` as an input of a step that donates those of ``trained``.

        Weights of ``trained`` are left out (a function may be its own target, or be derived from the one in training):
        a donated buffer must not come in twice. ``resolve_weights`` puts them back inside the trace.
        """
        return None if self is trained else (self._params, self._function_state)

    def resolve_weights(self, exported: PyTree, trained: Any, weights: tuple[Any, Any]) -> tuple[Any, Any]:
        """``(params, function_state)`` from what was exported and the weights of ``trained``; traceable."""
        return weights if self is trained else exported

    # ------------------------------------------------------------------ the pure function

    @property
    def function(self) -> Callable:
        """Jitted pure function ``(params, function_state, rng, *inputs, is_training) -> (output, function_state)``.

        Inputs are preprocessed batches, as ``func`` gets them; ``is_training`` is static.
        """
        return self._function

    @property
    def has_memory(self) -> bool:
        """Whether calls need a carry: true for a ``StatefulModule`` that remembers something."""
        return self._has_memory

    @property
    def carry_structure(self) -> Any:
        """The tree structure of the carry."""
        return self._carry_structure

    @property
    def takes_action_as_input(self) -> bool:
        """Whether ``func`` takes state and action (type 1)."""
        return False

    def sequence(self, *, with_action: bool = False) -> Callable[..., Unrolled]:
        """Pure: the function along a sequence, see :mod:`triax.functions.sequences`."""
        return self._lifted.unroll

    def to_module(self) -> nnx.Module:
        """The network as a module of its own, in evaluation mode, with copies of the weights: for analysis.

        Raises:
            TypeError: it is made of a Haiku-style function, or of other functions.
        """
        lifted = getattr(self, "_lifted", None)
        if lifted is None or lifted.module is None:
            raise TypeError(
                f"{type(self).__name__}.to_module: there is no module: func must be a flax.nnx.Module or a factory of"
                " one. A function that is made of others has parts to ask, such as q."
            )
        with WEIGHTS_LOCK:
            self.raise_if_lost()
            params, function_state = copy_arrays((self._params, self._function_state))
        return lifted.module.merge(params, function_state, self.rng, is_training=False)

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """The memory at the start of an episode, leaves ``[batch_size, ...]``; ``()`` for a memoryless function."""
        with WEIGHTS_LOCK:
            self.raise_if_lost()
            return self._initial_carry(self._params, self._function_state, self.rng, batch_size)

    def _checked_carry(self, carry: Carry | None) -> Carry:
        """What to run with when the caller passed ``carry``."""
        return checked_carry(
            type(self).__name__,
            carry,
            self._carry_structure,
            has_memory=self._has_memory,
            has_logp=bool(self.kinds & {"policy", "stochastic"}),
        )

    def _run(self, call: Callable, carry: Carry | None, *inputs: Any) -> tuple[Any, Carry]:
        """One jitted call with a fresh key."""
        carry = self._checked_carry(carry)
        with WEIGHTS_LOCK:
            try:
                return call(self._params, self._function_state, self._keys.draw(), carry, *inputs)
            except RuntimeError as error:
                self.raise_if_lost(error)
                raise

    # ------------------------------------------------------------------ randomness

    @property
    def random_seed(self) -> int:
        """The seed; assigning it restarts the stream of random numbers, the weights stay."""
        return self._random_seed

    @random_seed.setter
    def random_seed(self, random_seed: int | None) -> None:
        self._random_seed = seed_or_entropy(random_seed)
        self._keys = KeyStream(make_key(self._random_seed))

    @property
    def rng(self) -> Key:
        """A fresh key: each read gives another one."""
        return self._keys.key()

    @property
    def key_stream(self) -> KeyStream:
        """The stream that calls draw from; its ``position`` is part of a state to resume from."""
        return self._keys

    # ------------------------------------------------------------------ copies

    def copy(self: A, deep: bool = False) -> A:
        """A copy with weights and a random stream of its own; the compiled functions are shared.

        Nothing but immutable definitions is shared in either case, so ``deep`` changes nothing.
        """
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        with WEIGHTS_LOCK:
            self.raise_if_lost()
            twin._params, twin._function_state = copy_arrays((self._params, self._function_state))
        twin._exposed = False
        twin._keys = KeyStream(fold_name(self.rng, "copy"))
        return twin

    def __copy__(self: A) -> A:
        return self.copy()

    def __deepcopy__(self: A, memo: dict) -> A:
        return self.copy(deep=True)

    def soft_update(self, other: Any, tau: Number) -> None:
        r"""Move the weights towards those of ``other``: :math:`\theta \leftarrow (1-\tau)\theta + \tau\theta'`.

        ``tau`` in [0, 1]; ``tau=1`` copies. ``function_state`` is copied unless ``tau`` is 0: running statistics mean
        something only together.

        Raises:
            TypeError: ``other`` is of another class or has other weights.
            ValueError: ``tau`` is outside [0, 1].
        """
        self.check_soft_update(other, tau)
        with WEIGHTS_LOCK:
            for f in (self, other):
                f.raise_if_lost()
            mine, theirs = ((f._params, f._function_state) for f in (self, other))
            self.put_weights(*interpolate(mine, theirs, float(tau)))

    def check_soft_update(self, other: Any, tau: Number) -> None:
        """Refuse what :meth:`soft_update` refuses, but for weights that do not fit, which shows when they are mixed."""
        name = type(self).__name__
        if not isinstance(other, type(self)):
            raise TypeError(f"{name}.soft_update: other must be a {name}; got {type(other).__name__}.")
        if not 0 <= tau <= 1:
            raise ValueError(f"{name}.soft_update: tau must be in [0, 1]; got {tau}.")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return refuse_pickle(self, protocol, "Save its params and function_state, for example with triax.runs.")

    # ------------------------------------------------------------------ printing

    def __repr__(self) -> str:
        return describe_function(type(self).__name__, self._facts(), self._parts())

    def _facts(self) -> list[str]:
        return [count_parameters(self._params), *(["with memory"] if self._has_memory else [])]

    def _parts(self) -> dict[str, Any]:
        parts = {
            "S": self.observation_space,
            "A": getattr(self, "action_space", None),
            "params": describe_leaves(self._params),
            "function_state": describe_leaves(self._function_state),
        }
        return {label: part for label, part in parts.items() if part}
