"""A Gymnasium environment whose episodes are known beforehand, and what stepping it must give."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AutoresetMode
from hypothesis import strategies as st


class Scheduled(gymnasium.Env):
    """Shows ``(episode, step)`` in a nested observation; episodes, counted from ``first``, end as the schedule says."""

    action_space = Discrete(2)
    observation_space = Dict(at=Tuple((Box(0, 1e6, (2,)), Discrete(1000))))

    def __init__(self, schedule, first=0):
        self.schedule, self.first, self.episode = schedule, first, first - 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self.observe(), {}

    def observe(self):
        return {"at": (np.array([self.episode, self.t], np.float32), self.t)}

    def step(self, action):
        self.t += 1
        length, how = self.schedule[(self.episode - self.first) % len(self.schedule)]
        ended = self.t >= length
        return (
            self.observe(),
            10.0 * self.episode + self.t,
            ended and how != "truncated",
            ended and how != "both",
            {},
        )


def expected_transitions(schedule, how_many, first=0):
    """One environment by hand: ``(episode, t, t + 1, reward, terminated, truncated)``."""
    rows, episode = [], first
    while len(rows) < how_many:
        length, how = schedule[(episode - first) % len(schedule)]
        for t in range(length):
            ended = t + 1 == length
            terminated = ended and how != "truncated"
            rows.append((episode, t, t + 1, 10.0 * episode + t + 1, terminated, ended and not terminated))
        episode += 1
    return rows[:how_many]


def by_hand(schedule, first, steps, mode):
    """The transitions of one environment in so many steps of all, in an autoreset mode."""
    rows = []
    for row in expected_transitions(schedule, steps, first):
        rows += [row, None] if mode is AutoresetMode.NEXT_STEP and (row[4] or row[5]) else [row]
    return [row for row in rows[:steps] if row is not None]


schedules = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["terminated", "truncated", "both"])), min_size=1, max_size=4
)
