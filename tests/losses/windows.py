"""Random windows of experience with every mixture of flags."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from oracles import steps_of

TIME, BATCH = 7, 3
FLAGS = [(False, False), (False, False), (True, False), (False, True), (True, True)]


class Window(NamedTuple):
    rewards: np.ndarray
    values: np.ndarray
    next_values: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    def columns(self):
        """The steps of each environment."""
        return [steps_of(*(array[:, b] for array in self)) for b in range(BATCH)]

    def oracle(self, function, *args):
        return np.stack([function(steps, *args) for steps in self.columns()], axis=1)


@st.composite
def windows(draw):
    """A window whose next values agree with its values inside an episode, and with nothing at its end."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    flags = draw(st.lists(st.sampled_from(FLAGS), min_size=TIME * BATCH, max_size=TIME * BATCH))
    terminated, truncated = np.array(flags).T.reshape(2, TIME, BATCH)
    rewards, values, finals = rng.normal(size=(3, TIME, BATCH)).astype(np.float32)
    following = np.concatenate([values[1:], finals[:1]])
    next_values = np.where(terminated | truncated, 100 * finals, following)
    return Window(rewards, values, next_values, terminated, truncated)


def log_ratios(window: Window) -> np.ndarray:
    """Log probability ratios that depend on the window only, on both sides of zero."""
    return 0.7 * np.sin(10 * window.rewards)
