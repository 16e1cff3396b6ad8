"""What all function approximators share: weights, function state, a key, copies and averages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from triax.core.keys import Key, fold_name, make_key, seed_or_entropy
from triax.core.trees import copy_arrays, describe_difference
from triax.functions.lift import Carry, Lifted, lift
from triax.functions.outputs import Output


@dataclass(frozen=True)
class InputSpec:
    """What goes into a function: examples by name (``S``, ``A``), preprocessed, of any batch size."""

    make: Callable[[int], dict[str, PyTree]]
    accepts: tuple[tuple[str, ...], ...]
    num_actions: int | None = None

    def example(self, names: tuple[str, ...], batch_size: int) -> tuple[PyTree, ...]:
        """Random members of the spaces, as ``func`` gets them."""
        made = self.make(batch_size)
        return tuple(made[name] for name in names)

    def per_action(self, names: tuple[str, ...]) -> int | None:
        """The number of actions that a function of these inputs answers for at once, if it is type 2."""
        return self.num_actions if names == ("S",) else None


WARM_UP_BATCH_SIZE = 64

A = TypeVar("A", bound="Approximator")


class Approximator:
    """A function with weights: the shell that a Python loop holds around a pure function.

    ``params`` and ``function_state`` may be read and assigned; an assigned tree must agree in structure, shapes and
    dtypes. Arrays that were handed out or taken in are never donated, so that references to them stay good.
    """

    kinds: ClassVar[frozenset[str]] = frozenset()
    """What it is, for the predicates ``is_vfunction``, ``is_policy``, ..."""

    _lifted: Lifted
    _random_seed: int
    _key: Any

    def _set_up(self, func: Any, inputs: InputSpec, output: Output, random_seed: int | None) -> None:
        """Turn ``func`` into a pure function, initialise it, and check one forward pass."""
        owner = type(self).__name__
        self._random_seed = seed_or_entropy(random_seed)
        self._key = make_key(self._random_seed)
        init_key = fold_name(self._key, "init")
        self._lifted = lift(func, owner=owner, accepts=inputs.accepts, key=init_key)
        names = self._lifted.inputs
        example = inputs.example(names, 1)
        self._params, self._function_state = self._lifted.init(init_key, *example, True)
        self._exposed = True  # the module given by the user may share the arrays
        carry = self._lifted.initial_carry(self._params, self._function_state, init_key, 1)
        self._has_memory = bool(jax.tree.leaves(carry))
        self._check_output(example, carry, output, inputs.per_action(names))
        self._function_state = self._warmed_up(inputs)
        self._function = without_carry(self._lifted.forward, len(example), owner, self._has_memory)
        self._initial_carry = jax.jit(self._lifted.initial_carry, static_argnums=3)

    def _check_output(self, example: tuple, carry: Carry, output: Output, num_actions: int | None) -> None:
        def check(params: Any, function_state: Any, rng: Key) -> tuple:
            result, next_carry, state = self._lifted.forward(params, function_state, rng, carry, *example, True)
            output.check(type(self).__name__, result, 1, num_actions)
            return next_carry, state

        jax.eval_shape(check, self._params, self._function_state, self._key)

    def _warmed_up(self, inputs: InputSpec) -> Any:
        """Haiku's moving averages start at zero variance: one pass over many examples makes them usable."""
        if self._lifted.module is not None or not jax.tree.leaves(self._function_state):
            return self._function_state
        example = inputs.example(self._lifted.inputs, WARM_UP_BATCH_SIZE)
        return self._lifted.forward(self._params, self._function_state, self._key, (), *example, True)[2]

    # ------------------------------------------------------------------ weights

    @property
    def params(self) -> Any:
        """The weights, a pytree; assigning checks structure, shapes and dtypes (``TypeError`` names the leaf)."""
        self._exposed = True
        return self._params

    @params.setter
    def params(self, params: Any) -> None:
        self._check_same("params", self._params, params)
        self._params, self._exposed = params, True

    @property
    def function_state(self) -> Any:
        """Non-trainable variables such as running statistics; assigning checks as ``params`` does."""
        self._exposed = True
        return self._function_state

    @function_state.setter
    def function_state(self, function_state: Any) -> None:
        self._check_same("function_state", self._function_state, function_state)
        self._function_state, self._exposed = function_state, True

    def _check_same(self, name: str, expected: Any, found: Any) -> None:
        difference = describe_difference(expected, found)
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

        InputSpec are preprocessed batches, as ``func`` gets them; ``is_training`` is static.
        """
        return self._function

    @property
    def has_memory(self) -> bool:
        """Whether calls need a carry: true for a ``StatefulModule`` that remembers something."""
        return self._has_memory

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """The memory at the start of an episode, leaves ``[batch_size, ...]``; ``()`` for a memoryless function."""
        return self._initial_carry(self._params, self._function_state, self.rng, batch_size)

    def _carry_or_none(self, carry: Carry | None) -> Carry:
        """What to run with when the caller passed ``carry``."""
        owner = type(self).__name__
        if carry is None:
            if self._has_memory:
                raise TypeError(
                    f"{owner}: func has memory, so a call needs its carry; got none. Start an episode with"
                    f" carry = f.initial_carry() and thread it: result, carry = f(..., carry)."
                )
            return ()
        if isinstance(carry, bool):
            raise TypeError(f"{owner}: return_logp is keyword-only; got {carry} in the place of carry.")
        return carry

    def _run(self, call: Callable, carry: Carry | None, *inputs: Any) -> tuple[Any, Carry]:
        """One jitted call that also advances the key."""
        result, carry, self._key = call(
            self._params, self._function_state, self._key, self._carry_or_none(carry), *inputs
        )
        return result, carry

    # ------------------------------------------------------------------ randomness

    @property
    def random_seed(self) -> int:
        """The seed; assigning it restarts the stream of random numbers, the weights stay."""
        return self._random_seed

    @random_seed.setter
    def random_seed(self, random_seed: int | None) -> None:
        self._random_seed = seed_or_entropy(random_seed)
        self._key = make_key(self._random_seed)

    @property
    def rng(self) -> Key:
        """A fresh key: each read gives another one."""
        self._key, rng = _split(self._key)
        return rng

    # ------------------------------------------------------------------ copies

    def copy(self: A, deep: bool = False) -> A:
        """A copy with weights and a random stream of its own; the compiled functions are shared.

        Nothing but immutable definitions is shared in either case, so ``deep`` changes nothing.
        """
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._params, twin._function_state = copy_arrays((self._params, self._function_state))
        twin._exposed = False
        twin._key = fold_name(self.rng, "copy")
        return twin

    def __copy__(self: A) -> A:
        return self.copy()

    def __deepcopy__(self: A, memo: dict) -> A:
        return self.copy(deep=True)

    def soft_update(self, other: Any, tau: float) -> None:
        r"""Move the weights towards those of ``other``: :math:`\theta \leftarrow (1-\tau)\theta + \tau\theta'`.

        ``tau`` in [0, 1]; ``tau=1`` copies. Floating leaves of ``function_state`` are averaged, others are copied.

        Raises:
            TypeError: ``other`` is of another class or has other weights.
            ValueError: ``tau`` is outside [0, 1].
        """
        if not isinstance(other, type(self)):
            raise TypeError(
                f"{type(self).__name__}.soft_update: other must be a {type(self).__name__}; got {type(other).__name__}."
            )
        if not 0 <= tau <= 1:
            raise ValueError(f"{type(self).__name__}.soft_update: tau must be in [0, 1]; got {tau}.")
        mine = self._params, self._function_state
        theirs = other._params, other._function_state
        if jax.tree.structure(mine) != jax.tree.structure(theirs):
            self._check_same("soft_update", mine, theirs)
        self._params, self._function_state = _interpolate(mine, theirs, float(tau))
        self._exposed = False

    def __repr__(self) -> str:
        count = sum(leaf.size for leaf in jax.tree.leaves(self._params))
        shapes = jax.tree.map(jnp.shape, self._params)
        return f"{type(self).__name__}({count} parameters, {shapes})"


_split = jax.jit(lambda key: tuple(jax.random.split(key)))


@jax.jit
def _interpolate(mine: PyTree, theirs: PyTree, tau: jax.Array) -> PyTree:
    def leaf(a: jax.Array, b: jax.Array) -> jax.Array:
        if not jnp.issubdtype(b.dtype, jnp.floating):
            return jnp.copy(b)
        # 0 * inf is NaN: a copy must not look at what it replaces
        return jnp.where(tau >= 1, b, (1 - tau) * a + tau * b).astype(a.dtype)

    return jax.tree.map(leaf, mine, theirs)


def without_carry(forward: Callable, num_inputs: int, owner: str, has_memory: bool) -> Callable:
    """The public, jitted form of ``forward``: no carry goes in or comes out."""

    @partial(jax.jit, static_argnums=3 + num_inputs)
    def function(params: Any, function_state: Any, rng: Key, *inputs_and_mode: Any) -> tuple:
        if has_memory:
            raise TypeError(
                f"{owner}: func has memory, and a flat batch of transitions has no time axis to thread it along."
                " Pass a Trajectory."
            )
        output, _, function_state = forward(params, function_state, rng, (), *inputs_and_mode)
        return output, function_state

    return function
