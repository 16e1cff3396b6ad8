import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.reward_tracing import NStep

from .test_n_step import ENDS, pop_all
from .tracing_oracle import random_episode, step_kwargs


def expected_entry(episode, k, known):
    """State, action, reward, done at time ``k`` once ``known`` steps are added; ``None`` where unknown."""
    T = episode.length
    if k < known:
        done = k == T - 1 and not episode.bootstraps
        return episode.observations[k], episode.actions[k], episode.rewards[k], done
    if known < T:
        return episode.observations[k], None, None, False
    if episode.bootstraps:
        return episode.observations[T], None, None, True
    return episode.observations[T - 1], episode.actions[T - 1], episode.rewards[T - 1], True


@given(st.integers(1, 6), st.integers(1, 4), ENDS, st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_tells_each_step_of_the_window(length, n, end, with_s_next, drain_at_once):
    if not with_s_next and length == 1:
        end = "terminated"
    episode = random_episode(np.random.default_rng(length), length, end, tells_last=with_s_next)
    tracer, popped = NStep(n, 0.9, record_extra_info=True), []
    for t in range(length):
        tracer.add(**step_kwargs(episode, t, with_s_next))
        if drain_at_once or t == length - 1:
            before = len(popped)
            pop_all(tracer, popped)
            popped[before:] = [(batch, t + 1) for batch in popped[before:]]
    assert len(popped) == length
    for t, (batch, known) in enumerate(popped):
        info = batch.extra_info
        assert {len(entries) for entries in info.values()} == {n + 1}
        for k in range(n + 1):
            state, action, reward, done = expected_entry(episode, t + k, known)
            np.testing.assert_array_equal(info["states"][k][0], state)
            assert info["dones"][k].tolist() == [done]
            if action is None:
                assert np.isnan(info["rewards"][k][0])
                assert np.isnan(info["log_props"][k][0])
            else:
                assert info["actions"][k].tolist() == [action]
                np.testing.assert_allclose(info["rewards"][k], [reward], rtol=1e-6)
                index = min(t + k, length - 1)
                np.testing.assert_allclose(info["log_props"][k], [episode.logps[index]], rtol=1e-6)
                np.testing.assert_allclose(info["weights"][k], [episode.weights[index]], rtol=1e-6)


def valid_up_to_the_first_done(dones):
    return [not any(dones[:k]) for k in range(len(dones))]


@pytest.mark.parametrize(
    ("end", "valid"), [("terminated", [1, 1, 0, 0]), ("truncated", [1, 1, 1, 0]), ("both", [1, 1, 0, 0])]
)
def test_dones_tell_which_states_are_real(end, valid):
    episode = random_episode(np.random.default_rng(0), 2, end)
    tracer = NStep(3, 0.9, record_extra_info=True)
    for t in range(2):
        tracer.add(**step_kwargs(episode, t, True))
    info = tracer.pop().extra_info
    assert valid_up_to_the_first_done([done[0] for done in info["dones"]]) == valid


def test_each_observation_is_stored_once():  # F10
    tracer = NStep(3, 0.9, record_extra_info=True)
    popped = []
    for t in range(8):
        tracer.add(np.full(4, t), 0, 1.0, t == 7)
        pop_all(tracer, popped)
    addresses = {
        entry.__array_interface__["data"][0]
        for batch in popped
        for entry in (*batch.extra_info["states"], batch.S, batch.S_next)
    }
    assert len(addresses) == 8


def test_a_flush_joins_the_entries():
    tracer = NStep(2, 0.9, record_extra_info=True)
    for t in range(4):
        tracer.add(t, 0, float(t), t == 3)
    info = tracer.flush().extra_info
    np.testing.assert_array_equal(np.stack(info["states"]), [[0, 1, 2, 3], [1, 2, 3, 3], [2, 3, 3, 3]])
    np.testing.assert_array_equal(np.stack(info["dones"])[1], [False, False, True, True])
