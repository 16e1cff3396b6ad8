import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.core.errors import InsufficientCacheError
from triax.experience_replay import PrioritizedReplayBuffer, SimpleReplayBuffer
from triax.reward_tracing import MonteCarlo, NStep

from .tracing_oracle import assert_is_transition, expected_transition, random_episode, step_kwargs

ENDS = st.sampled_from(["terminated", "truncated", "both"])


@st.composite
def episode_lists(draw, with_s_next):
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    if not with_s_next:
        lengths[0] = max(lengths[0], 2)  # the first step must not come with s_next
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return [random_episode(rng, length, draw(ENDS), draw(st.booleans())) for length in lengths]


def pop_all(tracer, into):
    while tracer:
        into.append(tracer.pop())


@given(st.data(), st.booleans(), st.booleans(), st.integers(1, 4), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
@settings(max_examples=60, deadline=None)
def test_traces_every_step_of_every_episode(data, with_s_next, drain_at_once, n, gamma):  # F1
    episodes = data.draw(episode_lists(with_s_next))
    if with_s_next and episodes[0].length == 1:
        episodes[0].tells_last = True
    tracer = NStep(n, gamma)
    for episode in episodes:
        popped = []
        for t in range(episode.length):
            tracer.add(**step_kwargs(episode, t, with_s_next))
            if drain_at_once:
                pop_all(tracer, popped)
        pop_all(tracer, popped)
        assert len(popped) == episode.length
        assert len(tracer) == 0
        for t, batch in enumerate(popped):
            assert_is_transition(batch, expected_transition(episode, t, n, gamma, with_s_next))


@given(st.integers(0, 9), st.integers(1, 4), st.booleans())
@settings(max_examples=30, deadline=None)
def test_is_ready_as_soon_as_the_data_are(length, n, with_s_next):  # F2
    episode = random_episode(np.random.default_rng(0), 10, "terminated")
    tracer, popped = NStep(n, 0.9), []
    for t in range(length):
        tracer.add(**step_kwargs(episode, t, with_s_next))
        pop_all(tracer, popped)
    ready = length - n + 1 if with_s_next else length - n
    assert len(popped) == max(ready, 0)
    assert len(tracer) == length - len(popped)


def test_gives_the_contracts_example():
    tracer = NStep(3, 0.9)
    for t in range(5):
        tracer.add(t, 0, 1.0, t == 4)
    batch = tracer.flush()
    np.testing.assert_allclose(batch.Rn, [2.71, 2.71, 2.71, 1.9, 1.0], rtol=1e-6)
    np.testing.assert_allclose(batch.In, [0.729, 0.729, 0, 0, 0], rtol=1e-6)
    np.testing.assert_array_equal(batch.S, range(5))
    np.testing.assert_array_equal(batch.idx, range(5))  # F9


def test_all_transitions_of_a_tracer_have_one_structure():  # F3
    for with_s_next in (True, False):
        structures = set()
        tracer = NStep(2, 0.9)
        rng = np.random.default_rng(0)
        for end in ("terminated", "truncated", "both"):
            episode = random_episode(rng, 4, end)
            for t in range(4):
                tracer.add(**step_kwargs(episode, t, with_s_next))
            structures |= {jax.tree.structure(single) for single in tracer.flush().to_singles()}
        assert len(structures) == 1


def test_unknown_next_actions_are_marked():  # F3
    tracer = NStep(1, 0.9)
    tracer.add(0, 3, 1.0, False)
    tracer.add(1, 4, 1.0, False, truncated=True, s_next=2)
    batch = tracer.flush()
    np.testing.assert_array_equal(np.isnan(batch.logP_next), [False, True])
    np.testing.assert_array_equal(batch.A_next, [4, 4])
    np.testing.assert_array_equal(batch.S_next, [1, 2])
    np.testing.assert_allclose(batch.In, [0.9, 0.9])


def test_popping_too_early_is_refused():
    tracer = NStep(2, 0.9)
    for _ in range(2):
        tracer.add(0, 0, 1.0, False)
    for method in (tracer.pop, tracer.flush):
        with pytest.raises(InsufficientCacheError, match="2 steps are cached"):
            method()
    assert len(tracer) == 2


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "1"])
def test_n_must_be_a_positive_int(n):
    with pytest.raises(TypeError, match="n"):
        NStep(n, 0.9)


@pytest.mark.parametrize("gamma", [1.1, -0.1, "0.9"])
def test_gamma_must_be_in_the_unit_interval(gamma):
    with pytest.raises(TypeError, match="gamma"):
        NStep(1, gamma)


@pytest.mark.parametrize("error", [ValueError, TypeError])
def test_numbers_out_of_range_are_value_errors_as_elsewhere_and_type_errors_as_in_coax(error):
    for make in (
        lambda: NStep(0, 0.9),
        lambda: NStep(1, 2.0),
        lambda: MonteCarlo(-0.1),
        lambda: NStep(1, 0.9).add(0, 0, 1.0, False, w=0.0),
        lambda: SimpleReplayBuffer(0),
        lambda: PrioritizedReplayBuffer(5, alpha=-1.0),
    ):
        with pytest.raises(error, match=r"must be a (positive )?(int|number)"):
            make()


def test_has_its_two_numbers_as_attributes():
    tracer = NStep(np.int64(3), np.float32(0.5))
    assert (tracer.n, tracer.gamma) == (3, 0.5)
