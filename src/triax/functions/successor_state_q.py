"""``SuccessorStateQ``: a q-function from a one-step look-ahead."""

import warnings
from functools import partial
from typing import Any, ClassVar

import jax
import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import PyTree

from triax.core.keys import Key
from triax.functions.approximator import Carry, without_carry
from triax.functions.model_types import as_type2
from triax.functions.predicates import is_reward_function, is_stochastic, is_transition_model, is_vfunction
from triax.functions.q import Q, value_calls
from triax.functions.values import value_of
from triax.spaces import sample_batch


class SuccessorStateQ(Q):
    r"""A q-function from a value function, a transition model and a reward function.

    .. math:: q(s, a) = r(s, a) + \gamma\, v(s'(s, a))

    Stochastic parts enter through their means. Spaces, preprocessors and the postprocessor are those of ``p``,
    ``value_transform`` and the key those of ``v``. ``params`` is ``{"v", "p", "r", "gamma"}`` and ``function_state``
    ``{"v", "p", "r"}``, both read-only: train the parts. Nothing tells it where episodes end.

    Args:
        v: a ``V`` or ``StochasticV``.
        p: a ``TransitionModel`` or ``StochasticTransitionModel``.
        r: a ``RewardFunction`` or ``StochasticRewardFunction``.
        gamma: the discount factor, a plain attribute that may change without recompilation.

    Raises:
        TypeError: a part is of another kind, or has memory.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"q"})

    def __init__(self, v: Any, p: Any, r: Any, gamma: float = 0.9) -> None:
        for argument, part, right, kind in (
            ("v", v, is_vfunction, "a V or StochasticV"),
            ("p", p, is_transition_model, "a TransitionModel or StochasticTransitionModel"),
            ("r", r, is_reward_function, "a RewardFunction or StochasticRewardFunction"),
        ):
            if not right(part):
                raise TypeError(f"SuccessorStateQ: {argument} must be {kind}; got {type(part).__name__}.")
            if part.has_memory:
                raise TypeError(f"SuccessorStateQ: {argument} must be memoryless; its func has a carry.")
        self.v, self.p, self.r, self.gamma = v, p, r, gamma
        self.observation_space, self.action_space = p.observation_space, p.action_space
        self.observation_preprocessor, self.action_preprocessor = (
            p.observation_preprocessor,
            p.action_preprocessor,
        )
        self.observation_postprocessor = getattr(p, "observation_postprocessor", None)
        self.value_transform = v.value_transform
        self._has_memory = False
        self._encode_state, self._encode_action = p._encode_state, p._encode_action
        self._warn_if_preprocessors_differ()
        self._derive_calls()

    def _derive_calls(self) -> None:
        parts = (value_of(self.v), _next_state_of(self.p), value_of(self.r))
        self._forward_type1 = partial(_look_ahead, parts, self.value_transform.transform_func)
        self._forward_type2 = None
        if isinstance(self.action_space, Discrete):
            self._forward_type2 = as_type2(self._forward_type1, self._all_actions(self.action_space))
        self._function_type1 = self._function = without_carry(self._forward_type1, 2, "SuccessorStateQ", False)
        self._function_type2 = self._forward_type2 and without_carry(self._forward_type2, 1, "SuccessorStateQ", False)
        self._value_type1, self._value_type2 = value_calls(self)

    def _warn_if_preprocessors_differ(self) -> None:
        rng = jax.random.PRNGKey(0)
        S = sample_batch(self.observation_space, 8, 0)
        A = sample_batch(self.action_space, 8, 1)
        checks = [
            ("observation_preprocessor", S, (self.v, self.p, self.r)),
            ("action_preprocessor", A, (self.p, self.r)),
        ]
        for attribute, X, parts in checks:
            first, *others = (getattr(part, attribute)(rng, X) for part in parts)
            if not all(_same(first, other) for other in others):
                warnings.warn(
                    f"SuccessorStateQ: the parts differ in {attribute}, so they see different inputs;"
                    f" pass {attribute}=p.{attribute} to the others.",
                    stacklevel=3,
                )

    @property
    def _params(self) -> dict:
        gamma = np.float32(self.gamma)
        return {"v": self.v._params, "p": self.p._params, "r": self.r._params, "gamma": gamma}

    @property
    def _function_state(self) -> dict:
        return {"v": self.v._function_state, "p": self.p._function_state, "r": self.r._function_state}

    @property
    def _exposed(self) -> bool:
        return True

    @_exposed.setter
    def _exposed(self, exposed: bool) -> None:
        for part in (self.v, self.p, self.r):
            part._exposed = part._exposed or exposed

    @property
    def _key(self) -> Key:
        return self.v._key

    @_key.setter
    def _key(self, key: Key) -> None:
        self.v._key = key

    @property
    def modeltype(self) -> int:
        """Always 1: the look-ahead takes one action; ``function_type2`` tries them all."""
        return 1

    def export_weights(self, trained: Any) -> PyTree:
        """``gamma``, and what the parts export."""
        return np.float32(self.gamma), [part.export_weights(trained) for part in (self.v, self.p, self.r)]

    def resolve_weights(self, exported: PyTree, trained: Any, weights: tuple[Any, Any]) -> tuple[Any, Any]:
        """``gamma`` beside the weights of the parts."""
        gamma, parts = exported
        resolved = {
            name: part.resolve_weights(leaf, trained, weights)
            for (name, part), leaf in zip((("v", self.v), ("p", self.p), ("r", self.r)), parts, strict=True)
        }
        params = {name: params for name, (params, _) in resolved.items()}
        return {**params, "gamma": gamma}, {name: state for name, (_, state) in resolved.items()}

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """``()``: the parts are memoryless."""
        return ()

    def copy(self, deep: bool = False) -> "SuccessorStateQ":
        """The same on copies of the parts."""
        return type(self)(self.v.copy(deep), self.p.copy(deep), self.r.copy(deep), self.gamma)

    def soft_update(self, other: Any, tau: float) -> None:
        """Move each part towards the same part of ``other``."""
        if not isinstance(other, SuccessorStateQ):
            raise TypeError(
                f"SuccessorStateQ.soft_update: other must be a SuccessorStateQ; got {type(other).__name__}."
            )
        for mine, theirs in ((self.v, other.v), (self.p, other.p), (self.r, other.r)):
            mine.soft_update(theirs, tau)


def _next_state_of(p: Any) -> Any:
    """Pure ``(params, state, rng, S, A, is_training) -> raw next state``: its mean if it is stochastic."""
    forward, finish = p._forward_type1, p.proba_dist.mean if is_stochastic(p) else lambda output: output

    def next_state(params: Any, state: Any, rng: Key, *args: Any) -> tuple:
        output, _, state = forward(params, state, rng, (), *args)
        return finish(output), state

    return next_state


def _look_ahead(
    parts: tuple, transform: Any, params: dict, state: dict, rng: Key, carry: Carry, *inputs_and_mode: Any
) -> tuple:
    S, A, training = inputs_and_mode
    value, next_state, reward = parts
    rng_p, rng_v, rng_r = jax.random.split(rng, 3)
    S_next, state_p = next_state(params["p"], state["p"], rng_p, S, A, training)
    v, state_v = value(params["v"], state["v"], rng_v, S_next, training)
    r, state_r = reward(params["r"], state["r"], rng_r, S, A, training)
    q = transform(r + params["gamma"] * v)
    return q, carry, {"v": state_v, "p": state_p, "r": state_r}


def _same(a: PyTree, b: PyTree) -> bool:
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.shape(x) == np.shape(y) and np.allclose(x, y) for x, y in pairs)
