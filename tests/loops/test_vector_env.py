import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.loops.vector_env import VectorStepper


class Counter(gymnasium.Env):
    """Shows ``(episode, step)`` in a nested observation; episodes end as the schedule says."""

    action_space = Discrete(2)
    observation_space = Dict(at=Tuple((Box(0, 1e6, (2,)), Discrete(1000))))

    def __init__(self, schedule):
        self.schedule, self.episode = schedule, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self.observe(), {}

    def observe(self):
        return {"at": (np.array([self.episode, self.t], np.float32), self.t)}

    def step(self, action):
        self.t += 1
        length, how = self.schedule[self.episode % len(self.schedule)]
        ended = self.t >= length
        return (
            self.observe(),
            10.0 * self.episode + self.t,
            ended and how != "truncated",
            ended and how != "both",
            {},
        )


def expected_transitions(schedule, how_many):
    """One environment by hand: ``(episode, t, t + 1, reward, terminated, truncated)``."""
    rows, episode = [], 0
    while len(rows) < how_many:
        length, how = schedule[episode % len(schedule)]
        for t in range(length):
            ended = t + 1 == length
            terminated = ended and how != "truncated"
            rows.append((episode, t, t + 1, 10.0 * episode + t + 1, terminated, ended and not terminated))
        episode += 1
    return rows[:how_many]


schedules = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["terminated", "truncated", "both"])), min_size=1, max_size=4
)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@given(many=st.lists(schedules, min_size=1, max_size=3), steps=st.integers(1, 20))
@settings(max_examples=25, deadline=None)
def test_valid_steps_are_those_of_each_environment_alone(mode, many, steps):
    env = SyncVectorEnv([lambda s=s: Counter(s) for s in many], autoreset_mode=mode)
    stepper = VectorStepper(env)
    s, seen = stepper.reset(seed=0), [[] for _ in many]
    for _ in range(steps):
        step = stepper.step(np.zeros(len(many), int))
        for k in np.flatnonzero(step.valid):
            (episode, t), (same, t_next) = s["at"][0][k], step.next_observation["at"][0][k]
            assert episode == same
            assert step.next_observation["at"][1][k] == t_next
            seen[k].append((episode, t, t_next, step.reward[k], step.terminated[k], step.truncated[k]))
        np.testing.assert_array_equal(step.starts, step.observation["at"][1] == 0)
        s = step.observation
    for schedule, rows in zip(many, seen, strict=True):
        assert rows == expected_transitions(schedule, len(rows))


def test_asynchronous_environments_show_their_final_observations_too():
    schedule = [(2, "truncated"), (1, "terminated")]
    env = AsyncVectorEnv([lambda: Counter(schedule)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    try:
        stepper = VectorStepper(env)
        stepper.reset(seed=0)
        stepper.step(np.zeros(2, int))
        step = stepper.step(np.zeros(2, int))
        assert step.truncated.all()
        np.testing.assert_array_equal(step.next_observation["at"][0], [[0, 2], [0, 2]])
        np.testing.assert_array_equal(step.observation["at"][0], [[1, 0], [1, 0]])
    finally:
        env.close()


def test_a_truncation_without_final_observation_is_an_error():
    class Silent(SyncVectorEnv):
        def _add_info(self, vector_infos, env_info, env_num):
            return vector_infos

    env = Silent([lambda: Counter([(1, "truncated")])], autoreset_mode=AutoresetMode.SAME_STEP)
    stepper = VectorStepper(env)
    stepper.reset(seed=0)
    with pytest.raises(ValueError, match=r"environment 0 was truncated.*nothing to bootstrap from"):
        stepper.step(np.zeros(1, int))


def test_single_environments_and_unknown_modes_are_refused():
    with pytest.raises(TypeError, match="make_vec"):
        VectorStepper(gymnasium.make("CartPole-v1"))
    env = gymnasium.make_vec("CartPole-v1", num_envs=1)
    env.metadata = {"autoreset_mode": "sometimes"}
    with pytest.raises(TypeError, match="unknown autoreset_mode 'sometimes'"):
        VectorStepper(env)
