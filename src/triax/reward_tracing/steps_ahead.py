"""The ``extra_info`` of n-step transitions: what happened at every step of the window."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import PyTree

from triax.reward_tracing.tracer import Step


def steps_ahead(steps: Sequence[Step], n: int, has_last: bool, last_observation: PyTree) -> dict[str, tuple[Any, ...]]:
    """The window of an n-step transition: tuples of length ``n + 1``, one entry per step ``t..t+n``.

    Keys: ``states, actions, rewards, dones, log_props, weights``; each entry has a batch axis of one.

    ``dones[k]`` says that nothing comes after entry ``k``: an entry is real up to and including the first
    ``True``. That is the last step of an episode that terminated. An episode that was truncated after ``m``
    steps has one entry more, ``m``, whose state is the last observation, from which the transition
    bootstraps. Later entries repeat it with ``done=True``. Where the state is real but the action is not
    known (that entry, and ``n`` when steps come with ``s_next``), the action repeats the last one and
    ``rewards`` and ``log_props`` are NaN.

    ``steps`` are the up to ``n + 1`` cached ones from ``t`` on, ``has_last`` tells that the last of them is
    the episode's last, ``last_observation`` is ``None`` unless it was truncated. States and actions are
    shared between transitions, not copied.
    """
    entries = list(steps)
    after = last_observation if has_last else entries[-1].s_next
    if after is not None and len(entries) <= n:
        entries.append(entries[-1]._replace(s=after, r=np.nan, logp=np.nan))
        nothing_after = has_last
    else:
        nothing_after = has_last and last_observation is None
    first_done = len(entries) - 1 if nothing_after else n + 1
    entries += entries[-1:] * (n + 1 - len(entries))
    columns = np.array([(step.r, step.logp, step.w) for step in entries], np.float32).T
    rewards, log_props, weights = (tuple(column[:, None]) for column in columns)
    return {
        "states": tuple(step.s for step in entries),
        "actions": tuple(step.a for step in entries),
        "rewards": rewards,
        "dones": tuple(np.array([k >= first_done]) for k in range(n + 1)),
        "log_props": log_props,
        "weights": weights,
    }
