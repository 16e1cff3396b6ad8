import jax.numpy as jnp
import numpy as np
import pytest

from jax_envs import PlainState
from triax.env_protocol import State, cut_episode, episode_flags


def plain(done, info=None):
    return PlainState((), 0.0, 0.0, done, info or {}, {})


def native(terminated, truncated):
    return State.first(0.0).replace(terminated=jnp.asarray(terminated), truncated=jnp.asarray(truncated))


@pytest.mark.parametrize(
    ("done", "info", "terminated", "truncated"),
    [
        (False, {}, False, False),
        (True, {}, True, False),
        (1.0, {}, True, False),
        (1.0, {"truncated": False}, True, False),
        (1.0, {"truncated": True}, False, True),
        (True, {"truncation": 1.0}, False, True),
        (True, {"truncation": 0.0}, True, False),
        (True, {"truncation": 1.0, "truncated": False}, False, True),
        (0.0, {"truncated": True}, False, False),  # only done ends an episode
        (True, {"time_out": 1.0}, True, False),  # what Brax's pendulum says of a fallen pole
    ],
)
def test_done_and_info_tell_how_an_episode_ended(done, info, terminated, truncated):  # nnx-ppo F11
    assert tuple(map(bool, episode_flags(plain(done, info)))) == (terminated, truncated)


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True)])
def test_states_of_triax_say_it_themselves(flags):
    assert tuple(map(bool, episode_flags(native(*flags)))) == flags


def test_flags_are_told_for_whole_batches():
    state = plain(np.array([1.0, 1.0, 0.0]), {"truncation": np.array([0.0, 1.0, 0.0])})
    terminated, truncated = episode_flags(state)
    np.testing.assert_array_equal(terminated, [True, False, False])
    np.testing.assert_array_equal(truncated, [False, True, False])


@pytest.mark.parametrize("kind", ["plain", "native"])
@pytest.mark.parametrize("at_limit", [False, True])
@pytest.mark.parametrize("ended", [(False, False), (True, False), (False, True)])
def test_a_limit_cuts_only_what_did_not_end_by_itself(kind, at_limit, ended):  # nnx-ppo F7
    terminated, truncated = ended
    state = native(*ended) if kind == "native" else plain(float(any(ended)), {"truncated": truncated})
    cut = cut_episode(state, jnp.asarray(at_limit), like=state)
    expected = (terminated, truncated or (at_limit and not terminated))
    assert tuple(map(bool, episode_flags(cut))) == expected
    assert bool(cut.done) == any(expected) and bool(cut.info["truncated"]) == expected[1]


def test_done_keeps_the_dtype_of_the_state_before():  # nnx-ppo F32
    cut = cut_episode(plain(1.0), jnp.asarray(True), like=plain(False))
    assert cut.done.dtype == jnp.bool_


def test_the_dict_of_the_state_is_not_written_to():  # nnx-ppo F53
    state = plain(0.0, {"own": 1})
    cut_episode(state, jnp.asarray(True), like=state)
    assert state.info == {"own": 1}
