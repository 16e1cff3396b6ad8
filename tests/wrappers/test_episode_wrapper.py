import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_envs import OnlyTimesOut, PlainState, PlainWalk, Walk
from triax.env_protocol import episode_flags, restart
from triax.envs import State
from triax.wrappers import EpisodeWrapper

KEY = jax.random.PRNGKey(0)


def steps(env, action, count, state):
    states = []
    for _ in range(count):
        state = env.step(state, action)
        states.append(state)
    return states


@pytest.mark.parametrize("make", [Walk, PlainWalk])
def test_an_episode_is_truncated_after_max_len_steps(make):
    env = EpisodeWrapper(make(), 3)
    states = steps(env, np.zeros(1), 3, env.restart(KEY))
    assert [tuple(map(bool, episode_flags(s))) for s in states] == [(False, False)] * 2 + [(False, True)]
    assert [bool(s.done) for s in states] == [bool(s.info["truncated"]) for s in states] == [False, False, True]
    assert [int(s.info["step_counter"]) for s in states] == [1, 2, 3]


@pytest.mark.parametrize("make", [Walk, PlainWalk])
def test_a_termination_in_the_last_step_is_no_truncation(make):  # nnx-ppo F7
    env = EpisodeWrapper(make(), 1)
    (state,) = steps(env, np.full(1, 5.0), 1, env.restart(KEY))
    assert tuple(map(bool, episode_flags(state))) == (True, False) and not bool(state.info["truncated"])


def test_the_environments_own_limit_passes():
    env = EpisodeWrapper(OnlyTimesOut(2, "truncation"), 100, desynchronize=False)
    last = steps(env, 0, 2, env.reset(KEY))[-1]
    assert tuple(map(bool, episode_flags(last))) == (False, True)


def test_first_episodes_begin_at_counters_below_half_the_limit_that_differ():
    env = EpisodeWrapper(Walk(), 10)
    counters = jax.vmap(env.reset)(jax.random.split(KEY, 200)).info["step_counter"]
    assert counters.dtype == jnp.int32 and set(counters.tolist()) == set(range(5))


def test_later_episodes_and_those_in_step_begin_at_zero():  # nnx-ppo F7
    rngs = jax.random.split(KEY, 50)
    assert not jax.vmap(lambda rng: restart(EpisodeWrapper(Walk(), 10), rng))(rngs).info["step_counter"].any()
    assert not jax.vmap(EpisodeWrapper(Walk(), 10, desynchronize=False).reset)(rngs).info["step_counter"].any()


def test_the_counter_leaves_the_environments_draws_alone():
    synchronous = EpisodeWrapper(Walk(), 10, desynchronize=False)
    np.testing.assert_array_equal(EpisodeWrapper(Walk(), 10).reset(KEY).obs, synchronous.reset(KEY).obs)


def test_states_stay_of_the_environments_kind():
    assert isinstance(EpisodeWrapper(PlainWalk(), 2).reset(KEY), PlainState)
    assert isinstance(EpisodeWrapper(Walk(), 2).reset(KEY), State)


def test_reset_and_step_fit_into_one_scan():  # nnx-ppo F32
    env = EpisodeWrapper(OnlyTimesOut(5), 3)
    first = env.reset(KEY)

    class BoolDone(OnlyTimesOut):
        def reset(self, rng):
            return super().reset(rng).replace(done=jnp.zeros((), jnp.bool_))

    assert env.step(first, 0).done.dtype == jnp.float32
    mixed = EpisodeWrapper(BoolDone(5), 3)
    assert mixed.step(mixed.reset(KEY), 0).done.dtype == jnp.bool_
    native = EpisodeWrapper(Walk(), 3)
    jax.lax.scan(lambda state, _: (native.step(state, jnp.zeros(1)), None), native.reset(KEY), None, 4)


def test_the_dict_of_the_state_is_not_written_to():  # nnx-ppo F53
    env = EpisodeWrapper(Walk(), 3)
    state = env.reset(KEY)
    counter = state.info["step_counter"]
    env.step(state, np.zeros(1))
    assert state.info["step_counter"] is counter and not bool(state.info["truncated"])


def test_sizes_and_all_else_are_those_of_the_environment():  # nnx-ppo F53
    env = EpisodeWrapper(PlainWalk(), 3)
    assert (env.observation_size, env.action_size) == (1, 1)
    assert env.render([None]).shape == (1, 1, 1, 3)


@pytest.mark.parametrize("max_len", [0, -1, True])
def test_a_limit_that_is_no_positive_int_is_refused(max_len):
    with pytest.raises(ValueError, match=f"max_len must be a positive int; got {max_len}"):
        EpisodeWrapper(Walk(), max_len)
