import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.core.errors import InsufficientCacheError
from triax.reward_tracing import MonteCarlo

from .test_n_step import episode_lists
from .tracing_oracle import assert_is_transition, expected_transition, random_episode, step_kwargs


@given(st.data(), st.booleans(), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
@settings(max_examples=40, deadline=None)
def test_traces_full_returns_backwards(data, with_s_next, gamma):  # F1
    episodes = data.draw(episode_lists(with_s_next))
    if with_s_next and episodes[0].length == 1:
        episodes[0].tells_last = True
    tracer = MonteCarlo(gamma)
    for episode in episodes:
        for t in range(episode.length):
            assert not tracer
            tracer.add(**step_kwargs(episode, t, with_s_next))
            assert len(tracer) == t + 1
        for t in reversed(range(episode.length)):
            assert tracer
            batch = tracer.pop()
            assert_is_transition(batch, expected_transition(episode, t, None, gamma, with_s_next))
        assert not tracer


def test_flush_is_in_the_order_of_pop():
    tracer = MonteCarlo(0.5)
    for t in range(3):
        tracer.add(t, 0, 1.0, t == 2)
    batch = tracer.flush()
    np.testing.assert_array_equal(batch.S, [2, 1, 0])
    np.testing.assert_array_equal(batch.Rn, [1, 1.5, 1.75])
    np.testing.assert_array_equal(batch.idx, [0, 1, 2])  # F9


def test_a_reset_forgets_the_return_so_far():
    tracer = MonteCarlo(0.9)
    for t in range(3):
        tracer.add(t, 0, 10.0, t == 2)
    tracer.pop()
    tracer.reset()
    episode = random_episode(np.random.default_rng(0), 2, "truncated")
    for t in range(2):
        tracer.add(**step_kwargs(episode, t, False))
    assert_is_transition(tracer.pop(), expected_transition(episode, 1, None, 0.9, False))


def test_popping_before_the_end_is_refused():
    tracer = MonteCarlo(0.9)
    tracer.add(0, 0, 1.0, False)
    with pytest.raises(InsufficientCacheError, match="1 steps are cached"):
        tracer.pop()
    assert len(tracer) == 1
