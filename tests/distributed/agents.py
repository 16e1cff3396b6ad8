"""A small agent on CartPole, and what a distributed run needs to make it."""

import functools

import gymnasium

from triax.agents import QLearningAgent, QLearningConfig
from triax.distributed import Recipe

SMALL = QLearningConfig(alpha=0.6, hidden=(8,), batch_size=8)


def make_small(env, config=SMALL):
    return QLearningAgent(env, config)


class Failing(gymnasium.Env):
    """Breaks in its 40th step."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.low, {}

    def step(self, action):
        self.steps += 1
        if self.steps == 40:
            raise OSError("the robot fell over")
        return self.observation_space.low, 0.0, False, False, {}


CARTPOLE = Recipe(functools.partial(gymnasium.make, "CartPole-v1"), make_small)
FAILING = Recipe(Failing, make_small)
