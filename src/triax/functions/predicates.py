"""What kind of function an object is: each class says so in ``kinds``, and subclasses inherit it."""

from typing import Any


def _has_kind(obj: Any, kind: str) -> bool:
    return kind in getattr(type(obj), "kinds", ())


def is_vfunction(obj: Any) -> bool:
    """Whether ``obj`` is a ``V`` or ``StochasticV``."""
    return _has_kind(obj, "v")


def is_qfunction(obj: Any) -> bool:
    """Whether ``obj`` is a ``Q``, ``StochasticQ``, ``SuccessorStateQ`` or reward function (a ``Q`` by another name)."""
    return _has_kind(obj, "q")


def is_policy(obj: Any) -> bool:
    """Whether ``obj`` is a ``Policy``, ``EpsilonGreedy``, ``BoltzmannPolicy`` or ``RandomPolicy``."""
    return _has_kind(obj, "policy")


def is_reward_function(obj: Any) -> bool:
    """Whether ``obj`` is a ``RewardFunction`` or ``StochasticRewardFunction``."""
    return _has_kind(obj, "reward")


def is_transition_model(obj: Any) -> bool:
    """Whether ``obj`` is a ``TransitionModel`` or ``StochasticTransitionModel``."""
    return _has_kind(obj, "transition")


def is_stochastic(obj: Any) -> bool:
    """Whether ``obj`` parametrises a distribution: ``Policy`` and the ``Stochastic*`` classes."""
    return _has_kind(obj, "stochastic")
