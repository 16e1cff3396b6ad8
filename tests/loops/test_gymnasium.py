"""The loop hands the agent what the environment gave, and obeys its hooks."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from triax.loops import evaluate, run_gymnasium
from triax.loops.gymnasium import episode_seed


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
    assert env.seeds == [episode_seed(7, 0), episode_seed(7, 1)]


def test_without_a_seed_the_environment_decides_how_episodes_begin():
    env = Counter(3, truncates=True)
    run_gymnasium(Recorder(), env, 7)
    assert env.seeds == [None, None, None]


def test_seeds_of_episodes_differ_between_runs_and_episodes_and_are_32_bit_ints():
    seeds = {episode_seed(seed, episode) for seed in (0, 1, 2**31 - 1) for episode in range(300)}
    assert len(seeds) == 900
    assert min(seeds) >= 0
    assert max(seeds) < 2**31


class Noisy(gymnasium.Env):
    """Episodes whose start, steps and length are drawn from the environment's own generator."""

    observation_space = Box(0, 1, (1,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(1), {}

    def step(self, a):
        return self.np_random.random(1), float(self.np_random.random()), self.np_random.random() < 0.2, False, {}


class Witness(Recorder):
    def act(self, s):
        return 0


def test_going_on_where_an_episode_has_ended_sees_the_episodes_of_an_unbroken_run():
    unbroken, first, second = Witness(), Witness(), Witness()
    assert run_gymnasium(unbroken, Noisy(), 60, seed=5) == 60
    ends = []
    stop = lambda p: ends.append((p.step, p.episodes)) or p.episodes == 4 if p.episode_ended else None  # noqa: E731
    step = run_gymnasium(first, Noisy(), 60, seed=5, hooks=[stop])
    assert ends[-1] == (step, 4)
    assert run_gymnasium(second, Noisy(), 60, seed=5, start=ends[-1]) == 60
    assert first.steps + second.steps == unbroken.steps
    assert len(unbroken.steps) == 60


def test_a_run_that_is_done_takes_no_step():
    env = Counter(3, truncates=True)
    assert run_gymnasium(Recorder(), env, 6, seed=0, start=(6, 2)) == 6
    assert env.seeds == []


def test_hooks_are_told_steps_ends_and_metrics_and_may_stop_the_loop():
    told = []

    def hook(progressed):
        told.append((progressed.step, progressed.episode_ended, progressed.metrics, progressed.episodes))
        return progressed.step == 3

    assert run_gymnasium(Recorder(), Counter(2, truncates=False), 10, hooks=[hook]) == 3
    assert told == [(1, False, None, 0), (2, True, {"loss": 2}, 1), (3, False, None, 1)]


def test_every_hook_is_called_even_when_an_earlier_one_stops_the_loop():
    called = []
    hooks = [lambda p: True, lambda p: called.append(p.step)]
    run_gymnasium(Recorder(), Counter(2, truncates=False), 10, hooks=hooks)
    assert called == [1]


def test_evaluate_gives_the_undiscounted_return_of_each_episode():
    env = Counter(4, truncates=True)
    assert evaluate(lambda s: 1, env, num_episodes=3, seed=5).tolist() == [4, 4, 4]
    assert env.seeds == [5, None, None]
