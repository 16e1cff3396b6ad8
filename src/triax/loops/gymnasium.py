"""An agent in a Gymnasium environment: the loop knows no algorithm and calls hooks for the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from jaxtyping import Float

from triax.core.env_arguments import check_gymnasium_env


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
    episodes: int = 0
    """Episodes that have ended so far."""


Hook = Callable[[Progressed], bool | None]
"""Called after each step; returning ``True`` stops the loop."""


def episode_seed(seed: int, episode: int) -> int:
    """What the reset of an episode, counted from 0, is seeded with in a run of ``seed``: an int in [0, 2^31).

    So an episode begins as it does whatever was played before: a resumed run sees those of an unbroken one.
    """
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0] >> 1)


def run_gymnasium(
    agent: HostAgent,
    env: gymnasium.Env,
    total_steps: int,
    *,
    hooks: Sequence[Hook] = (),
    seed: int | None = None,
    start: tuple[int, int] = (0, 0),
) -> int:
    """Act, step, observe, until ``total_steps`` steps are done or a hook stops the loop.

    Args:
        agent: anything with ``act`` and ``observe``.
        env: a Gymnasium environment.
        total_steps: the step at which the loop ends.
        hooks: called in order after each step.
        seed: decides how each episode begins: see :func:`episode_seed`; ``None`` leaves that to the environment.
        start: steps and episodes done before, of a run that goes on where an episode has ended.

    Returns:
        The number of steps done, those before included.
    """
    check_gymnasium_env("run_gymnasium", env)
    step, episodes = start
    while step < total_steps:
        s, _ = env.reset(seed=None if seed is None else episode_seed(seed, episodes))
        ended = False
        while step < total_steps and not ended:
            step += 1
            a = agent.act(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            metrics = agent.observe(s, a, float(r), terminated, truncated, s_next)
            s, ended = s_next, bool(terminated or truncated)
            episodes += ended
            progressed = Progressed(step, ended, metrics, episodes)
            stops = [hook(progressed) for hook in hooks]
            if True in stops:
                return step
    return step


def evaluate(
    act: Callable[[Any], Any], env: gymnasium.Env, *, num_episodes: int, seed: int | None = None
) -> Float[np.ndarray, " episodes"]:
    """The undiscounted return of each of ``num_episodes`` episodes; ``seed`` seeds the first reset."""
    check_gymnasium_env("evaluate", env)
    returns = np.zeros(num_episodes)
    for episode in range(num_episodes):
        s, _ = env.reset(seed=seed if episode == 0 else None)
        ended = False
        while not ended:
            s, r, terminated, truncated, _ = env.step(act(s))
            returns[episode] += float(r)
            ended = terminated or truncated
    return returns
