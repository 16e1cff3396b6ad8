"""An agent in a Gymnasium environment: the loop knows no algorithm and calls hooks for the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from jaxtyping import Float


@runtime_checkable
class HostAgent(Protocol):
    """What the loop needs of an agent."""

    def act(self, s: Any) -> Any:
        """An exploring action."""
        ...

    def observe(
        self, s: Any, a: Any, r: float, terminated: bool, truncated: bool, s_next: Any
    ) -> dict[str, Any] | None:
        """Take in one step; metrics if it led to an update."""
        ...


@dataclass(frozen=True)
class Progressed:
    """What a hook is told after each step."""

    step: int
    """Steps so far."""
    episode_ended: bool
    """Whether this step ended an episode."""
    metrics: dict[str, Any] | None
    """Metrics of an update, on the device."""


Hook = Callable[[Progressed], bool | None]
"""Called after each step; returning ``True`` stops the loop."""


def run_gymnasium(
    agent: HostAgent,
    env: gymnasium.Env,
    total_steps: int,
    *,
    hooks: Sequence[Hook] = (),
    seed: int | None = None,
) -> int:
    """Act, step, observe, for ``total_steps`` steps or until a hook stops the loop.

    Args:
        agent: anything with ``act`` and ``observe``.
        env: a Gymnasium environment; ``seed`` seeds its first reset.
        total_steps: at most this many steps are taken.
        hooks: called in order after each step.
        seed: of the environment.

    Returns:
        The number of steps taken.
    """
    s, _ = env.reset(seed=seed)
    for step in range(1, total_steps + 1):
        a = agent.act(s)
        s_next, r, terminated, truncated, _ = env.step(a)
        metrics = agent.observe(s, a, float(r), terminated, truncated, s_next)
        ended = bool(terminated or truncated)
        progressed = Progressed(step, ended, metrics)
        stops = [hook(progressed) for hook in hooks]
        if True in stops:
            return step
        s = env.reset()[0] if ended else s_next
    return total_steps


def evaluate(
    act: Callable[[Any], Any], env: gymnasium.Env, *, num_episodes: int, seed: int | None = None
) -> Float[np.ndarray, " episodes"]:
    """The undiscounted return of each of ``num_episodes`` episodes; ``seed`` seeds the first reset."""
    returns = np.zeros(num_episodes)
    for episode in range(num_episodes):
        s, _ = env.reset(seed=seed if episode == 0 else None)
        ended = False
        while not ended:
            s, r, terminated, truncated, _ = env.step(act(s))
            returns[episode] += float(r)
            ended = terminated or truncated
    return returns
