"""Functions of state and action in both forms: type 1, ``f(s, a)``, and type 2, ``f(s, .)``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.functions.approximator import Approximator
from triax.functions.evaluate import Prepare, Preprocessor, without_carry
from triax.functions.inputs import (
    input_encoder,
    prepare_state,
    prepare_state_action,
    preprocess_each,
    space_of,
    state_action_inputs,
)
from triax.functions.lift import unroll_rows
from triax.functions.model_types import Forward, as_type1, as_type2
from triax.functions.outputs import Output
from triax.functions.sequences import Sequence, pick_along
from triax.spaces import default_preprocessor


class StateActionFunction(Approximator):
    """What ``Q``, rewards and transition models share: two inputs, two forms, the check of a missing action."""

    _forward_type1: Forward
    _forward_type2: Forward | None
    _function_type1: Callable
    _function_type2: Any
    action_space: Any

    def _set_up_state_action(
        self,
        func: Any,
        env: Any,
        output: Output,
        *,
        observation_preprocessor: Preprocessor | None,
        action_preprocessor: Preprocessor | None,
        random_seed: int | None,
    ) -> None:
        owner = type(self).__name__
        self.observation_space = space_of(env, "observation_space", who=owner)
        self.action_space = space_of(env, "action_space", who=owner)
        self.observation_preprocessor = observation_preprocessor or default_preprocessor(self.observation_space)
        self.action_preprocessor = action_preprocessor or default_preprocessor(self.action_space)
        self._encode_state = input_encoder(self.observation_space, who=owner, argument="s")
        self._encode_action = input_encoder(self.action_space, who=owner, argument="a")
        inputs = state_action_inputs(
            self.observation_space,
            self.action_space,
            self.observation_preprocessor,
            self.action_preprocessor,
            who=owner,
        )
        self._set_up(func, inputs, output, random_seed)
        self._derive_forms()

    def _derive_forms(self) -> None:
        forward = self._lifted.forward
        if self.modeltype == 1:
            self._set_forms(forward)
            return
        self._check_one_hot()
        self._set_forms(as_type1(forward), forward)

    def _set_forms(self, type1: Forward, type2: Forward | None = None) -> None:
        """Both forms of the function; type 2 is made from type 1 if it is not given and actions are ``Discrete``."""
        owner, space, memory = type(self).__name__, self.action_space, self._has_memory
        if type2 is None and isinstance(space, Discrete):
            type2 = as_type2(type1, self._preprocessed_actions(int(space.n)))
        self._forward_type1, self._forward_type2 = type1, type2
        self._function_type1 = without_carry(type1, ("S", "A"), owner, memory)
        self._function_type2 = type2 and without_carry(type2, ("S",), owner, memory)

    def _preprocessed_actions(self, count: int) -> PyTree:
        """The first ``count`` actions, preprocessed one by one: a preprocessor need not know batches."""
        actions = np.arange(count, dtype=np.int32) + np.int32(self.action_space.start)
        return preprocess_each(
            self.action_preprocessor, actions, who=type(self).__name__, argument="action_preprocessor"
        )

    def _check_one_hot(self) -> None:
        """One-hot actions pick from the outputs of a type-2 function."""
        n = int(self.action_space.n)
        count = min(n, 8)
        actions = jax.tree.leaves(self._preprocessed_actions(count))
        if len(actions) != 1 or actions[0].shape != (count, n) or not np.array_equal(actions[0], np.eye(count, n)):
            raise TypeError(
                f"{type(self).__name__}: action_preprocessor must give one-hot actions, shape (batch, {n}), for a"
                " type-2 func, func(S, is_training). Leave it out, or let func take A as an input."
            )

    @property
    def modeltype(self) -> int:
        """1 if ``func`` takes state and action, 2 if it takes the state and answers for all actions."""
        return 1 if self._lifted.inputs == ("S", "A") else 2

    @property
    def function_type1(self) -> Callable:
        """Jitted pure ``(params, function_state, rng, S, A, is_training) -> (output, function_state)``."""
        return self._function_type1

    @property
    def function_type2(self) -> Callable:
        """Jitted pure ``(params, function_state, rng, S, is_training) -> (output, function_state)``.

        Leaves are ``[batch, actions, ...]``.

        Raises:
            ValueError: the action space is not ``Discrete``.
        """
        if self._function_type2 is None:
            raise self._action_needed()
        return self._function_type2

    @property
    def takes_action_as_input(self) -> bool:
        """Whether ``func`` takes state and action (type 1)."""
        return self.modeltype == 1

    def sequence(self, *, with_action: bool = False) -> Sequence:
        """Pure: the function along a sequence, of the actions taken or of all actions."""
        if with_action == (self.modeltype == 1):
            return self._lifted.unroll
        if with_action:
            return pick_along(self._lifted.unroll)
        if self._forward_type2 is None:
            raise self._action_needed()
        if self._has_memory:
            raise TypeError(
                f"{type(self).__name__}: func has memory and takes the action, so it has no output for all actions:"
                " each would remember something else. Let it take S and return one output per action."
            )
        return unroll_rows(self._forward_type2)

    def _action_needed(self) -> ValueError:
        return ValueError(
            f"{type(self).__name__}: without an action there is one output per action, which needs a Discrete action"
            f" space; got {self.action_space}. Pass the action too: f(s, a)."
        )

    def _calls_for(self, a: Any, type1: Any, type2: Any, s: Any) -> tuple[Any, tuple]:
        """The calls and the encoded inputs for ``f(s, a)`` or, when ``a`` is ``None``, ``f(s)``."""
        if a is not None:
            return type1, (self._encode_state(s), self._encode_action(a))
        if type2 is None:
            raise self._action_needed()
        return type2, (self._encode_state(s),)

    def _facts(self) -> list[str]:
        return [f"type {self.modeltype}", *super()._facts()]

    def _prepare(self) -> tuple[Prepare, Prepare]:
        """Preprocessing of ``(s, a)`` and of ``(s,)`` inside the jitted call."""
        return (
            partial(prepare_state_action, self.observation_preprocessor, self.action_preprocessor),
            partial(prepare_state, self.observation_preprocessor),
        )
