"""Functions of state and action in both forms: type 1, ``f(s, a)``, and type 2, ``f(s, .)``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.functions.approximator import Approximator, without_carry
from triax.functions.evaluate import Prepare, Preprocessor
from triax.functions.inputs import prepare_state, prepare_state_action, state_action_inputs
from triax.functions.model_types import Forward, as_type1, as_type2
from triax.functions.outputs import Output
from triax.spaces import check_space, default_preprocessor, encoder


class StateActionFunction(Approximator):
    """What ``Q``, rewards and transition models share: two inputs, two forms, the check of a missing action."""

    _forward_type1: Forward
    _forward_type2: Forward | None
    _function_type2: Any

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
        for argument in ("observation_space", "action_space"):
            check_space(getattr(env, argument), who=owner, argument=argument)
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.observation_preprocessor = observation_preprocessor or default_preprocessor(env.observation_space)
        self.action_preprocessor = action_preprocessor or default_preprocessor(env.action_space)
        self._encode_state = encoder(env.observation_space, who=owner, argument="s")
        self._encode_action = encoder(env.action_space, who=owner, argument="a")
        inputs = state_action_inputs(
            env.observation_space, env.action_space, self.observation_preprocessor, self.action_preprocessor
        )
        self._set_up(func, inputs, output, random_seed)
        self._derive_forms(owner)

    def _derive_forms(self, owner: str) -> None:
        forward, memory = self._lifted.forward, self._has_memory
        if self.modeltype == 1:
            self._forward_type1 = forward
            self._forward_type2 = None
            if isinstance(self.action_space, Discrete):
                self._forward_type2 = as_type2(forward, self._all_actions(self.action_space))
        else:
            self._forward_type1, self._forward_type2 = as_type1(forward), forward
        self._function_type1 = without_carry(self._forward_type1, 2, owner, memory)
        self._function_type2 = self._forward_type2 and without_carry(self._forward_type2, 1, owner, memory)

    def _all_actions(self, space: Discrete) -> PyTree:
        """Every action, preprocessed one by one: a preprocessor need not know batches."""
        rng = jax.random.PRNGKey(0)
        actions = range(int(space.start), int(space.start + space.n))
        rows = [self.action_preprocessor(rng, self._encode_action(a)) for a in actions]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *rows)

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

    def _prepare(self) -> tuple[Prepare, Prepare]:
        """Preprocessing of ``(s, a)`` and of ``(s,)`` inside the jitted call."""
        return (
            partial(prepare_state_action, self.observation_preprocessor, self.action_preprocessor),
            partial(prepare_state, self.observation_preprocessor),
        )
