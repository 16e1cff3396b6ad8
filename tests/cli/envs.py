"""Environments of a few steps, which are registered with ``entry_point=...`` or by ``cli.envs:Name-v0``."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Tuple


class Strip(gymnasium.Env):
    """Eight steps along a strip; an action of 1 is rewarded. Its picture shows how far one is."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = Box(0, 1, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.start = 0, float(self.np_random.random())
        return self._observe(), {}

    def step(self, a):
        self.t += 1
        return self._observe(), float(a) + self.start, self.t == 8, False, {}

    def render(self):
        picture = np.zeros((32, 64, 3), np.uint8)
        picture[:, : 8 * self.t] = (250, 20, 20)
        return picture

    def _observe(self):
        return np.array([self.t / 8, self.start], np.float32)


class Named(Strip):
    """A reward for the name of one of three kinds; an observation and an action of several parts."""

    observation_space = Dict({"kind": Discrete(3, start=1), "place": Box(0, 1, (2,), np.float32)})
    action_space = Tuple((Box(-1, 1, (1,), np.float32), Discrete(3)))

    def step(self, a):
        reward = float(a[1] == self.kind - 1)
        observation, _, *rest = super().step(0)
        return observation, reward, *rest

    def _observe(self):
        self.kind = 1 + int(self.np_random.integers(3))
        return {"kind": self.kind, "place": super()._observe()}


class Unseen(Strip):
    """Makes no pictures."""

    metadata = {"render_modes": ["human"]}


class Endless(Strip):
    """Never ends, and renders no pictures although it says so."""

    def step(self, a):
        return super().step(a)[:2] + (False, False, {})

    def render(self):
        return "text"


gymnasium.register("Strip-v0", Strip)
gymnasium.register("Unseen-v0", Unseen)
gymnasium.register("Endless-v0", Endless)
gymnasium.register("Named-v0", Named)
