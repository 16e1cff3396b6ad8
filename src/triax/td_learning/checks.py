"""Checks of the arguments of TD rules: each raises, or returns nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from triax.core.trees import describe_difference
from triax.core.user_warnings import warn_user
from triax.functions import SuccessorStateQ, is_policy, is_qfunction, is_stochastic
from triax.regularizers import Regularizer


def check_trained(who: str, argument: str, f: Any, right_kind: Callable[[Any], bool], kind: str) -> None:
    """``TypeError`` unless ``f`` is of the kind and can be trained."""
    if not right_kind(f):
        raise TypeError(f"{who}: {argument} must be {kind}; got {type(f).__name__}.")
    if isinstance(f, SuccessorStateQ):
        raise TypeError(f"{who}: a SuccessorStateQ has no weights of its own. Train its parts.")


def check_target(
    who: str, argument: str, target: Any, right_kind: Callable[[Any], bool], kind: str, *, trained: Any
) -> None:
    """``TypeError`` unless ``target`` is of the kind, lives in the spaces of ``trained``, and has such outputs."""
    if not right_kind(target):
        raise TypeError(f"{who}: {argument} must be {kind}; got {type(target).__name__}.")
    check_spaces(who, argument, target, trained)
    if is_stochastic(target) != is_stochastic(trained):
        raise TypeError(
            f"{who}: {argument} is a {type(target).__name__}, the function in training a {type(trained).__name__}:"
            " both must be deterministic, or both distributional."
        )
    if is_stochastic(trained):
        _check_same_distribution(who, argument, target, trained)


def _check_same_distribution(who: str, argument: str, target: Any, trained: Any) -> None:
    """A distribution is pushed through the target as it is, so both must mean the same by their parameters."""
    a, b = target.proba_dist, trained.proba_dist
    difference = describe_difference(b.default_priors, a.default_priors, "dist_params")
    if type(a) is not type(b):
        difference = f"{type(a).__name__} instead of {type(b).__name__}"
    elif target.value_transform != trained.value_transform:
        difference = f"its value_transform is {target.value_transform} instead of {trained.value_transform}"
    elif difference is None and not np.array_equal(getattr(a, "atoms", ()), getattr(b, "atoms", ())):
        difference = f"its value_range is {target.value_range} instead of {trained.value_range}"
    if difference is not None:
        raise TypeError(f"{who}: the distribution of {argument} differs from the trained one: {difference}.")


def check_spaces(who: str, argument: str, f: Any, trained: Any) -> None:
    """``TypeError`` unless ``f`` has the spaces of ``trained``, as far as both have them."""
    for name in ("observation_space", "action_space"):
        found, wanted = getattr(f, name, None), getattr(trained, name, None)
        if None not in (found, wanted) and found != wanted:
            raise TypeError(f"{who}: {argument} must have the {name} of the trained function, {wanted}; got {found}.")


def check_q_functions(who: str, q: Any, q_targ: Any) -> None:
    """``TypeError`` unless ``q`` can be trained and ``q_targ`` is ``None`` or fits."""
    check_trained(who, "q", q, is_qfunction, "a q-function")
    if q_targ is not None:
        check_target(who, "q_targ", q_targ, is_qfunction, "a q-function", trained=q)


def check_policy(who: str, argument: str, pi: Any, trained: Any) -> None:
    """``TypeError`` unless ``pi`` is a policy in the spaces of ``trained``."""
    if not is_policy(pi):
        raise TypeError(
            f"{who}: {argument} must be a Policy, EpsilonGreedy or BoltzmannPolicy; got {type(pi).__name__}."
        )
    check_spaces(who, argument, pi, trained)


def check_target_policy(who: str, q: Any, pi_targ: Any) -> None:
    """The policy that picks the next action: needed unless actions are ``Discrete``, and useless if they are."""
    if isinstance(q.action_space, Discrete):
        if pi_targ is not None:
            warn_user(f"{who}: pi_targ is ignored: with Discrete actions the next action is an argmax.")
        return
    if pi_targ is None:
        raise TypeError(f"{who}: pi_targ is needed to pick the next action, since {q.action_space} is not Discrete.")
    check_policy(who, "pi_targ", pi_targ, q)


def check_list(who: str, argument: str, functions: Any, check: Callable[[Any], None]) -> None:
    """``TypeError`` or ``ValueError`` unless it is a non-empty list or tuple whose elements pass ``check``."""
    if not isinstance(functions, list | tuple):
        raise TypeError(f"{who}: {argument} must be a list or tuple; got {type(functions).__name__}.")
    if not functions:
        raise ValueError(f"{who}: {argument} must not be empty.")
    for f in functions:
        check(f)


def require_discrete(who: str, q: Any) -> None:
    """``NotImplementedError`` unless actions are ``Discrete``."""
    if not isinstance(q.action_space, Discrete):
        raise NotImplementedError(f"{who} needs a Discrete action space; got {q.action_space}.")


def check_loss_function(who: str, loss_function: Any, trained: Any) -> None:
    """``TypeError`` unless it is a function, and ``trained`` deterministic."""
    if not callable(loss_function):
        raise TypeError(f"{who}: loss_function must be a function; got {type(loss_function).__name__}.")
    if is_stochastic(trained):
        raise TypeError(
            f"{who}: a distributional function has a loss of its own (cross-entropy, quantile Huber);"
            " loss_function is for deterministic ones. Leave it out."
        )


def check_regularizer(who: str, regularizer: Any, trained: Any) -> None:
    """``TypeError`` unless it is ``None`` or a regularizer of a policy in the spaces of ``trained``."""
    if regularizer is None:
        return
    if not isinstance(regularizer, Regularizer):
        raise TypeError(f"{who}: policy_regularizer must be a Regularizer; got {type(regularizer).__name__}.")
    if not is_policy(regularizer.f):
        raise TypeError(
            f"{who}: policy_regularizer must be one of a policy; its f is a {type(regularizer.f).__name__}."
        )
    check_spaces(who, "policy_regularizer.f", regularizer.f, trained)
