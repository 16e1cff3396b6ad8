from collections import namedtuple

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple

from triax.reward_tracing import get_transition_batch

Spaces = namedtuple("Spaces", "observation_space action_space")
ENV = Spaces(
    Dict(image=Box(0, 255, (3, 3), np.uint8), real=Box(-np.inf, np.inf, (2,), np.float32)),
    Tuple((Discrete(3, start=5), Box(-1, 1, (1,), np.float32))),
)


def test_rows_are_members_of_the_spaces():
    batch = get_transition_batch(ENV, batch_size=20, random_seed=0)
    for single in batch.to_singles():
        for S, space in ((single.S, ENV.observation_space), (single.S_next, ENV.observation_space)):
            assert jax.tree.map(lambda leaf: leaf[0], S) in space
        for A in (single.A, single.A_next):
            assert jax.tree.map(lambda leaf: leaf[0], A) in ENV.action_space


def test_numbers_are_in_their_ranges():
    batch = get_transition_batch(ENV, batch_size=2000, gamma=0.5, random_seed=0)
    assert set(batch.In) == {0, 0.5}
    assert np.abs(batch.Rn).max() <= 5
    assert batch.Rn.std() == pytest.approx(1, abs=0.1)
    assert max(batch.logP.max(), batch.logP_next.max()) < 0
    assert batch.W.min() >= 0.0099
    assert batch.W.max() <= 100.01
    assert batch.W.dtype == batch.Rn.dtype == np.float32


def test_a_seed_decides_and_the_global_generator_is_untouched():
    np.random.seed(3)
    before = np.random.get_state()[1].copy()
    assert get_transition_batch(ENV, 4, random_seed=1) == get_transition_batch(ENV, 4, random_seed=1)
    assert get_transition_batch(ENV, 4, random_seed=1) != get_transition_batch(ENV, 4, random_seed=2)
    assert (np.random.get_state()[1] == before).all()


def test_works_on_an_environment_and_has_one_row_by_default():
    batch = get_transition_batch(gymnasium.make("CartPole-v1"))
    assert batch.batch_size == 1
    assert batch.S.shape == (1, 4)


@pytest.mark.parametrize("change", [{"batch_size": 0}, {"batch_size": 1.5}, {"gamma": 1.5}, {"gamma": "a"}])
def test_refuses_bad_numbers(change):
    with pytest.raises(TypeError, match=next(iter(change))):
        get_transition_batch(ENV, **change)
