"""MetaPolicyEnv: choose who acts instead of how."""

import inspect
from collections.abc import Callable
from typing import Any

import gymnasium

from triax.core.env_arguments import check_gymnasium_env

_NOTHING = object()


class MetaPolicyEnv(gymnasium.Wrapper):
    """An action is the index of an arm, a policy that then picks the environment's action.

    Args:
        env: any Gymnasium environment.
        arms: at least one callable: ``a = arm(s)``, or ``a, logp = arm(s, return_logp=True)`` for those with
            a parameter of that name, such as a ``Policy``, ``EpsilonGreedy`` or ``RandomPolicy``.

    The action space is ``Discrete(len(arms))``. ``info`` gains ``a``, the action, and ``logp``, its
    log-propensity in nats: 0 when the arm cannot tell. Raises ``TypeError`` for an arm that cannot be called,
    ``ValueError`` from ``step`` for what is no index of an arm.
    """

    def __init__(self, env: gymnasium.Env, *arms: Callable[..., Any]):
        check_gymnasium_env("MetaPolicyEnv", env)
        super().__init__(env)
        if not arms:
            raise TypeError("MetaPolicyEnv: at least one arm is needed. Try MetaPolicyEnv(env, pi, RandomPolicy(env)).")
        for arm in arms:
            if not callable(arm):
                raise TypeError(f"MetaPolicyEnv: an arm must be callable, a = arm(s); got {arm!r}.")
        self.arms = arms
        self.action_space = gymnasium.spaces.Discrete(len(arms))
        self._tells_logp = [_takes_return_logp(arm) for arm in arms]
        self._s: Any = _NOTHING

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment."""
        self._s, info = self.env.reset(seed=seed, options=options)
        return self._s, info

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]: the contract's name
        self, a_meta: Any
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps with the action that the arm picks for the last observation."""
        if not self.action_space.contains(a_meta):
            raise ValueError(f"MetaPolicyEnv: an action must be an int from 0 to {len(self.arms) - 1}; got {a_meta!r}.")
        if self._s is _NOTHING:
            raise gymnasium.error.ResetNeeded("MetaPolicyEnv: step before the first reset. Try reset() first.")
        a, logp = self._pick(int(a_meta))
        self._s, r, terminated, truncated, info = self.env.step(a)
        return self._s, r, bool(terminated), bool(truncated), {**info, "a": a, "logp": logp}

    def _pick(self, index: int) -> tuple[Any, Any]:
        """The arm's action and its log-propensity."""
        if self._tells_logp[index]:
            a, logp = self.arms[index](self._s, return_logp=True)
            return a, logp
        return self.arms[index](self._s), 0.0


def _takes_return_logp(arm: Callable[..., Any]) -> bool:
    """Whether the callable has a parameter ``return_logp``; of built-in ones it may be unknown, then not."""
    try:
        return "return_logp" in inspect.signature(arm).parameters
    except ValueError:
        return False
