import gymnasium
import jaxtyping
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from triax.wrappers import FrameStacking


class Counting(gymnasium.Env):
    """Observations count through all episodes; every third step truncates or terminates."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, ends="truncated", space=None):
        self.ends, self.count, self.resets = ends, 0, []
        self.observation_space = space or gymnasium.spaces.Box(0, 1e6, (1,))

    def _next(self):
        self.count += 1
        return np.array([self.count], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.count = seed
        self.resets.append((seed, options))
        self.t = 0
        return self._next(), {"reset": True}

    def step(self, action):
        self.t += 1
        end = self.t == 3
        return self._next(), 1.0, end and self.ends == "terminated", end and self.ends == "truncated", {}


def numbers(s):
    return [int(frame[0]) for frame in s]


def test_observations_are_the_last_frames_oldest_first():
    env = FrameStacking(Counting(), 3)
    s, info = env.reset()
    assert isinstance(s, tuple) and numbers(s) == [1, 1, 1] and info == {"reset": True}
    assert [numbers(env.step(0)[0]) for _ in range(3)] == [[1, 1, 2], [1, 2, 3], [2, 3, 4]]


@pytest.mark.parametrize("ends", ["truncated", "terminated", None])
def test_no_stack_holds_two_episodes(ends):
    env = FrameStacking(Counting(ends), 4)
    for _ in range(3):
        first = numbers(env.reset()[0])
        assert len(set(first)) == 1
        for _ in range(3):
            assert min(numbers(env.step(0)[0])) >= first[0]


def test_the_space_is_a_tuple_that_holds_every_observation():
    env = FrameStacking(Counting(), 2)
    assert env.observation_space == gymnasium.spaces.Tuple((env.unwrapped.observation_space,) * 2)
    assert env.reset()[0] in env.observation_space and env.step(0)[0] in env.observation_space


@pytest.mark.filterwarnings("ignore:.*WARN")  # the checker would rather see no wrapper
def test_the_wrapped_environment_follows_gymnasiums_interface():
    check_env(FrameStacking(gymnasium.make("CartPole-v1").unwrapped, 3), skip_render_check=True)


def test_seed_and_options_reach_the_environment():
    env = FrameStacking(Counting(), 2)
    assert numbers(env.reset(seed=5, options={"x": 1})[0]) == [6, 6]
    assert env.unwrapped.resets == [(5, {"x": 1})]


def test_no_stack_changes_with_another():
    env = FrameStacking(Counting(), 2)
    s, _ = env.reset()
    for frame in s:
        frame[:] = 99
    s_next = env.step(0)[0]
    assert numbers(s) == [99, 99] and numbers(s_next) == [1, 2]


def test_frames_may_be_numbers_and_trees():
    env = FrameStacking(gymnasium.make("FrozenLake-v1", is_slippery=False), 2)
    assert env.reset()[0] == (0, 0) and env.step(1)[0] == (0, 4)


def test_stepping_before_the_first_reset_is_an_error():
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"Try reset\(\) first"):
        FrameStacking(Counting(), 2).step(0)


@pytest.mark.parametrize("num_frames", [0, -1, 2.0, "3", True, None])
def test_a_number_of_frames_that_is_no_positive_int_is_refused(num_frames, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TypeError, match="num_frames must be a positive int; got"):
        FrameStacking(Counting(), num_frames)
