"""``SuccessorStateQ``: a q-function from a one-step look-ahead."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from jaxtyping import PyTree

from triax.core import random
from triax.core.keys import Key
from triax.core.numbers import Checked, check_number
from triax.core.user_warnings import warn_user
from triax.functions.approximator import Carry
from triax.functions.delegation import held_by
from triax.functions.inputs import input_encoder, preprocess_alike
from triax.functions.interpolation import Number, interpolate
from triax.functions.lift import unroll_rows
from triax.functions.predicates import is_reward_function, is_stochastic, is_transition_model, is_vfunction
from triax.functions.q import Q, value_calls
from triax.functions.raw_observations import Adapter, observation_adapter
from triax.functions.sequences import Sequence
from triax.functions.values import value_of
from triax.functions.weights_lock import WEIGHTS_LOCK


class SuccessorStateQ(Q):
    r"""A q-function from a value function, a transition model and a reward function.

    .. math:: q(s, a) = r(s, a) + \gamma\, v(s'(s, a))

    Stochastic parts enter through their means. Spaces, preprocessors and the postprocessor are those of ``p``,
    ``value_transform`` and the key those of ``v``. Parts that preprocess observations in another way than ``p`` get
    them decoded and preprocessed again. ``params`` is ``{"v", "p", "r", "gamma"}`` and ``function_state``
    ``{"v", "p", "r"}``, both read-only: train the parts. Nothing tells it where episodes end.

    Args:
        v: a ``V`` or ``StochasticV``.
        p: a ``TransitionModel`` or ``StochasticTransitionModel``.
        r: a ``RewardFunction`` or ``StochasticRewardFunction``.
        gamma: the discount factor, a plain attribute that may change without recompilation.

    Raises:
        TypeError: a part is of another kind, or has memory; ``gamma`` is no number.
        ValueError: ``gamma`` is not in [0, 1], here or when it is assigned.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"q"})

    gamma: Checked[float] = Checked(partial(check_number, low=0, high=1), "The discount factor.")

    def __init__(self, v: Any, p: Any, r: Any, gamma: Number = 0.9) -> None:
        for argument, part, right, kind in (
            ("v", v, is_vfunction, "a V or StochasticV"),
            ("p", p, is_transition_model, "a TransitionModel or StochasticTransitionModel"),
            ("r", r, is_reward_function, "a RewardFunction or StochasticRewardFunction"),
        ):
            if not right(part):
                raise TypeError(f"SuccessorStateQ: {argument} must be {kind}; got {type(part).__name__}.")
            if part.has_memory:
                raise TypeError(f"SuccessorStateQ: {argument} must be memoryless; its func has a carry.")
        _check_spaces(v, p, r)
        self.v, self.p, self.r, self.gamma = v, p, r, gamma
        self.observation_space, self.action_space = p.observation_space, p.action_space
        self.observation_preprocessor = p.observation_preprocessor
        self.action_preprocessor = p.action_preprocessor
        self.observation_postprocessor = p.observation_postprocessor
        self.value_transform = v.value_transform
        self._has_memory = False
        self._encode_state = input_encoder(self.observation_space, who="SuccessorStateQ", argument="s")
        self._encode_action = input_encoder(self.action_space, who="SuccessorStateQ", argument="a")
        self._warn_if_actions_differ()
        parts = (
            _seeing(value_of(v), observation_adapter(v, "v", p._raw_next, who="SuccessorStateQ")),
            _next_state_of(p),
            _seeing(value_of(r), observation_adapter(r, "r", p._raw_now, who="SuccessorStateQ")),
        )
        self._set_forms(partial(_look_ahead, parts, self.value_transform.transform_func))
        self._function = self._function_type1
        self._value_type1, self._value_type2 = value_calls(self)

    def _warn_if_actions_differ(self) -> None:
        if not preprocess_alike(self.action_space, self.p.action_preprocessor, self.r.action_preprocessor):
            warn_user(
                "SuccessorStateQ: the action_preprocessor of r differs from that of p, so r sees other inputs than it"
                " was made for; pass action_preprocessor=p.action_preprocessor to r."
            )

    # ------------------------------------------------------------------ weights

    _keys = held_by("v", "_keys")
    _random_seed = held_by("v", "_random_seed")

    @property
    def _params(self) -> dict:
        gamma = np.float32(self.gamma)
        return {"v": self.v._params, "p": self.p._params, "r": self.r._params, "gamma": gamma}

    @property
    def _function_state(self) -> dict:
        return {"v": self.v._function_state, "p": self.p._function_state, "r": self.r._function_state}

    def _expose(self) -> tuple[Any, Any]:
        with WEIGHTS_LOCK:
            for part in (self.v, self.p, self.r):
                part._expose()
            return self._params, self._function_state

    @property
    def params(self) -> dict:
        """``{"v", "p", "r", "gamma"}``, read-only."""
        return self._expose()[0]

    @params.setter
    def params(self, params: Any) -> None:
        raise self._read_only("params")

    @property
    def function_state(self) -> dict:
        """``{"v", "p", "r"}``, read-only."""
        return self._expose()[1]

    @function_state.setter
    def function_state(self, function_state: Any) -> None:
        raise self._read_only("function_state")

    def _read_only(self, name: str) -> AttributeError:
        return AttributeError(f"SuccessorStateQ.{name} is read-only: train or assign that of the parts, v, p and r.")

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

    def sequence(self, *, with_action: bool = False) -> Sequence:
        """Pure: the look-ahead along a sequence, row by row."""
        forward = self._forward_type1 if with_action else self._forward_type2
        if forward is None:
            raise self._action_needed()
        return unroll_rows(forward)

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """``()``: the parts are memoryless."""
        return ()

    # ------------------------------------------------------------------ copies

    def copy(self, deep: bool = False) -> "SuccessorStateQ":
        """The same on copies of the parts; the compiled functions are shared."""
        return self._on(*(part.copy(deep) for part in (self.v, self.p, self.r)))

    def __deepcopy__(self, memo: dict) -> "SuccessorStateQ":
        return self._on(*(copy.deepcopy(part, memo) for part in (self.v, self.p, self.r)))

    def _on(self, v: Any, p: Any, r: Any) -> "SuccessorStateQ":
        twin = object.__new__(type(self))
        vars(twin).update(vars(self) | {"v": v, "p": p, "r": r})
        return twin

    def soft_update(self, other: Any, tau: Number) -> None:
        """Move each part towards the same part of ``other``; ``gamma`` stays."""
        self.check_soft_update(other, tau)
        pairs = [(self.v, other.v), (self.p, other.p), (self.r, other.r)]
        with WEIGHTS_LOCK:
            self.raise_if_lost()
            other.raise_if_lost()
            moved = [
                interpolate(*((f._params, f._function_state) for f in pair), tau=float(tau))
                for pair in pairs  # all, before any is stored
            ]
            for (part, _), weights in zip(pairs, moved, strict=True):
                part.put_weights(*weights)

    def _facts(self) -> list[str]:
        return [f"gamma={self.gamma:g}"]

    def _parts(self) -> dict[str, Any]:
        return {"v": self.v, "p": self.p, "r": self.r}


def _check_spaces(v: Any, p: Any, r: Any) -> None:
    for attribute, parts in (("observation_space", (p, v, r)), ("action_space", (p, r))):
        spaces = [getattr(part, attribute) for part in parts]
        if any(space != spaces[0] for space in spaces):
            raise TypeError(
                f"SuccessorStateQ: the parts must share one {attribute}; got {', '.join(map(str, spaces))}."
            )


def _next_state_of(p: Any) -> Any:
    """Pure ``(params, state, rng, S, A, is_training) -> raw next state``: its mean if it is stochastic."""
    forward, finish = p._forward_type1, p.proba_dist.mean if is_stochastic(p) else lambda output: output

    def next_state(params: Any, state: Any, rng: Key, *args: Any) -> tuple:
        output, _, state = forward(params, state, rng, (), *args)
        return finish(output), state

    return next_state


def _seeing(value: Callable, adapt: Adapter) -> Callable:
    """``value`` of states in the form of the transition model."""

    def adapted(params: Any, state: Any, rng: Key, S: PyTree, *args: Any) -> tuple:
        rng_S, rng_value = random.split(rng)
        return value(params, state, rng_value, adapt(rng_S, S), *args)

    return adapted


def _look_ahead(
    parts: tuple, transform: Any, params: dict, state: dict, rng: Key, carry: Carry, *inputs_and_mode: Any
) -> tuple:
    S, A, training = inputs_and_mode
    value, next_state, reward = parts
    rng_p, rng_v, rng_r = random.split(rng, 3)
    S_next, state_p = next_state(params["p"], state["p"], rng_p, S, A, training)
    v, state_v = value(params["v"], state["v"], rng_v, S_next, training)
    r, state_r = reward(params["r"], state["r"], rng_r, S, A, training)
    q = transform(r + params["gamma"] * v)
    return q, carry, {"v": state_v, "p": state_p, "r": state_r}
