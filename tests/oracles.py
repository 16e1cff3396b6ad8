"""Returns as the textbook defines them, one step at a time in float64: slow, obvious, shared by the tests.

Everything here takes the steps of *one* environment in order, episodes one after another. A step that
is neither terminated nor truncated is followed by the next one of its episode; the last step given is
treated as cut short.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """One step; ``next_value`` is the value of the observation it really led to, final ones included."""

    reward: float
    value: float
    next_value: float
    terminated: bool
    truncated: bool


def steps_of(rewards, values, next_values, terminated, truncated) -> list[Step]:
    """The steps of arrays ``[time]``."""
    return [
        Step(float(r), float(v), float(n), bool(d), bool(c))
        for r, v, n, d, c in zip(rewards, values, next_values, terminated, truncated, strict=True)
    ]


def steps_to_boundary(steps: Sequence[Step], t: int) -> int:
    """How many steps there are from ``t`` to the end of its episode or of the window, both included."""
    for k, step in enumerate(steps[t:]):
        if step.terminated or step.truncated:
            return k + 1
    return len(steps) - t


def n_step_parts(steps: Sequence[Step], t: int, n: int, discount: float) -> tuple[float, float, int]:
    """``(Rn, In, m)`` of step ``t``: partial return, factor of the value after it, steps taken."""
    rewards = 0.0
    for k in range(n):
        step = steps[t + k]
        rewards += discount**k * step.reward
        if step.terminated:
            return rewards, 0.0, k + 1
        if step.truncated or t + k + 1 == len(steps):
            return rewards, discount ** (k + 1), k + 1
    return rewards, discount**n, n


def n_step_oracle(steps: Sequence[Step], n: int, discount: float) -> np.ndarray:
    """Targets of at most ``n`` rewards and the value that follows them."""
    targets = []
    for t in range(len(steps)):
        rewards, factor, taken = n_step_parts(steps, t, n, discount)
        targets.append(rewards + (factor * steps[t + taken - 1].next_value if factor else 0.0))
    return np.array(targets)


def lambda_return_oracle(steps: Sequence[Step], discount: float, lambda_: float) -> np.ndarray:
    """All n-step returns with weights ``(1 - lambda) lambda^(n-1)``, of which the longest takes the rest."""
    mixtures = []
    for t in range(len(steps)):
        longest = steps_to_boundary(steps, t)
        returns = [n_step_oracle(steps, n, discount)[t] for n in range(1, longest + 1)]
        weights = [(1 - lambda_) * lambda_ ** (n - 1) for n in range(1, longest)] + [lambda_ ** (longest - 1)]
        mixtures.append(np.dot(weights, returns))
    return np.array(mixtures)


def td_error_oracle(step: Step, discount: float) -> float:
    """``r + discount V' - V``, with nothing after a terminated step."""
    after = 0.0 if step.terminated else step.next_value
    return step.reward + discount * after - step.value


def gae_oracle(steps: Sequence[Step], discount: float, lambda_: float) -> np.ndarray:
    """The sum of discounted one-step errors to the end of the episode or window."""
    advantages = []
    for t in range(len(steps)):
        errors = [td_error_oracle(step, discount) for step in steps[t : t + steps_to_boundary(steps, t)]]
        advantages.append(sum((discount * lambda_) ** k * error for k, error in enumerate(errors)))
    return np.array(advantages)
