"""Checks of the arguments of TD rules."""

import warnings
from collections.abc import Callable
from typing import Any

from gymnasium.spaces import Discrete

from triax.core.trees import describe_difference
from triax.functions import SuccessorStateQ, is_policy, is_qfunction, is_stochastic


def check_function(
    who: str, argument: str, f: Any, right_kind: Callable[[Any], bool], kind: str, like: Any = None
) -> None:
    """Raise a ``TypeError`` unless ``f`` is of the kind; with ``like`` it is a target, and may be ``None``."""
    if f is None and like is not None:
        return
    if not right_kind(f):
        raise TypeError(f"{who}: {argument} must be {kind}; got {type(f).__name__}.")
    if like is None:
        if isinstance(f, SuccessorStateQ):
            raise TypeError(f"{who}: a SuccessorStateQ has no weights of its own. Train its parts.")
        return
    _check_same_outputs(who, argument, f, like)


def _check_same_outputs(who: str, argument: str, target: Any, trained: Any) -> None:
    """Both must be deterministic, or distributions with the same parameters."""
    if is_stochastic(target) != is_stochastic(trained):
        raise TypeError(
            f"{who}: {argument} is a {type(target).__name__}, the function in training a {type(trained).__name__}:"
            " both must be deterministic, or both distributional."
        )
    if is_stochastic(trained):
        difference = describe_difference(trained.proba_dist.default_priors, target.proba_dist.default_priors)
        if difference is not None or type(target.proba_dist) is not type(trained.proba_dist):
            raise TypeError(
                f"{who}: the distribution of {argument} differs from the trained one: {difference or 'its class'}."
            )


def check_q_functions(who: str, q: Any, q_targ: Any) -> None:
    """Raise a ``TypeError`` unless ``q`` can be trained and ``q_targ`` is ``None`` or fits."""
    check_function(who, "q", q, is_qfunction, "a q-function")
    check_function(who, "q_targ", q_targ, is_qfunction, "a q-function", like=q)


def check_policy(who: str, argument: str, pi: Any) -> None:
    """Raise a ``TypeError`` unless ``pi`` is a policy."""
    if not is_policy(pi):
        raise TypeError(
            f"{who}: {argument} must be a Policy, EpsilonGreedy or BoltzmannPolicy; got {type(pi).__name__}."
        )


def require_discrete(who: str, q: Any) -> None:
    """Raise a ``NotImplementedError`` unless actions are ``Discrete``."""
    if not isinstance(q.action_space, Discrete):
        raise NotImplementedError(f"{who} needs a Discrete action space; got {q.action_space}.")


def check_target_policy(who: str, q: Any, pi_targ: Any) -> None:
    """The policy that picks the next action: needed unless actions are ``Discrete``, and useless if they are."""
    if isinstance(q.action_space, Discrete):
        if pi_targ is not None:
            warnings.warn(
                f"{who}: pi_targ is ignored: with Discrete actions the next action is an argmax.",
                stacklevel=3,
            )
        return
    if pi_targ is None:
        raise TypeError(f"{who}: pi_targ is needed to pick the next action, since {q.action_space} is not Discrete.")
    check_policy(who, "pi_targ", pi_targ)


def check_list(who: str, argument: str, functions: Any, check: Callable[[Any], None]) -> None:
    """Raise unless it is a non-empty list or tuple whose elements pass ``check``."""
    if not isinstance(functions, list | tuple):
        raise TypeError(f"{who}: {argument} must be a list or tuple; got {type(functions).__name__}.")
    if not functions:
        raise ValueError(f"{who}: {argument} must not be empty.")
    for f in functions:
        check(f)
