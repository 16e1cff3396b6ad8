import numpy as np

from triax.distributed.replay_role import Replay

from .batches import NEEDS, numbered


def test_batches_are_drawn_by_the_errors_that_workers_gave():
    replay = Replay(NEEDS, 100, seed=0)
    replay.add(numbered(0, 50), np.where(np.arange(50) == 7, 1e6, 1e-3))
    batch, ids = replay.sample(200)
    assert ids.shape == batch.Rn.shape == (200, 4)
    np.testing.assert_array_equal(batch.Rn, ids)
    assert (ids == 7).mean() > 0.9


def test_numbers_go_on_from_those_of_the_life_before_and_what_it_does_not_know_is_left_alone():
    replay = Replay(NEEDS, 8, seed=0, first_id=1_000)
    replay.add(numbered(1_000, 4), np.ones(4))
    batch, ids = replay.sample(3)
    np.testing.assert_array_equal(batch.Rn, ids)
    before = replay.state_dict()["arrays"]["errors"]
    replay.set_errors(np.array([3, 999, 1_004, 1_001]), np.array([9.0, 9.0, 9.0, np.nan]))
    np.testing.assert_array_equal(replay.state_dict()["arrays"]["errors"], before)
    replay.set_errors(np.array([1_002]), np.array([9.0]))
    np.testing.assert_allclose(replay.state_dict()["arrays"]["errors"], [1, 1, 9, 1], rtol=1e-5)
