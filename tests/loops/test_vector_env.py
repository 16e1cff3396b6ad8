"""Valid steps are the same whichever way a vector environment begins the next episode."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduled_episodes import Scheduled, expected_transitions, schedules
from triax.loops.vector_env import VectorStepper


@pytest.mark.parametrize("mode", list(AutoresetMode))
@given(many=st.lists(schedules, min_size=1, max_size=3), steps=st.integers(1, 20))
@settings(max_examples=25, deadline=None)
def test_valid_steps_are_those_of_each_environment_alone(mode, many, steps):
    env = SyncVectorEnv([lambda s=s: Scheduled(s) for s in many], autoreset_mode=mode)
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
    env = AsyncVectorEnv([lambda: Scheduled(schedule)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
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

    env = Silent([lambda: Scheduled([(1, "truncated")])], autoreset_mode=AutoresetMode.SAME_STEP)
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
