"""The loop hands the agent what the environment gave, and obeys its hooks."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from triax.loops import evaluate, run_gymnasium


class Counter(gymnasium.Env):
    """Observations count steps since the reset; ends as told, and remembers how it was reset."""

    observation_space = Box(0, 100, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self, length, *, truncates):
        self.length, self.truncates, self.seeds = length, truncates, []

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, a):
        self.t += 1
        over = self.t == self.length
        return np.full(1, self.t, np.float32), float(a), over and not self.truncates, over and self.truncates, {}


class Recorder:
    def __init__(self):
        self.steps = []

    def act(self, s):
        return int(s[0]) % 2

    def observe(self, s, a, r, terminated, truncated, s_next):
        self.steps.append((s.item(), a, r, terminated, truncated, s_next.item()))
        return {"loss": len(self.steps)} if len(self.steps) % 2 == 0 else None


@pytest.mark.parametrize("truncates", [False, True])
def test_the_last_observation_of_an_episode_is_its_own_and_the_next_one_starts_afresh(truncates):
    agent, env = Recorder(), Counter(3, truncates=truncates)
    assert run_gymnasium(agent, env, 4, seed=7) == 4
    end = (not truncates, truncates)
    assert agent.steps == [
        (0, 0, 0.0, False, False, 1),
        (1, 1, 1.0, False, False, 2),
        (2, 0, 0.0, *end, 3),
        (0, 0, 0.0, False, False, 1),
    ]
    assert env.seeds == [7, None]


def test_hooks_are_told_steps_ends_and_metrics_and_may_stop_the_loop():
    told = []

    def hook(progressed):
        told.append((progressed.step, progressed.episode_ended, progressed.metrics))
        return progressed.step == 3

    assert run_gymnasium(Recorder(), Counter(2, truncates=False), 10, hooks=[hook]) == 3
    assert told == [(1, False, None), (2, True, {"loss": 2}), (3, False, None)]


def test_every_hook_is_called_even_when_an_earlier_one_stops_the_loop():
    called = []
    hooks = [lambda p: True, lambda p: called.append(p.step)]
    run_gymnasium(Recorder(), Counter(2, truncates=False), 10, hooks=hooks)
    assert called == [1]


def test_evaluate_gives_the_undiscounted_return_of_each_episode():
    env = Counter(4, truncates=True)
    assert evaluate(lambda s: 1, env, num_episodes=3, seed=5).tolist() == [4, 4, 4]
    assert env.seeds == [5, None, None]
