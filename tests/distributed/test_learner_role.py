import jax
import numpy as np
import pytest

from triax.distributed.learner_role import Learner
from triax.reward_tracing import TransitionBatch

from .agents import CARTPOLE


@pytest.fixture(scope="module")
def agent():
    return CARTPOLE.agent()


def batches(count, seed=0):
    rng = np.random.default_rng(seed)
    S, S_next = rng.normal(size=(2, count, 8, 4)).astype(np.float32)
    A = rng.integers(2, size=(count, 8)).astype(np.int32)
    Rn, In = rng.normal(size=(2, count, 8)).astype(np.float32)
    ones, idx = np.ones((count, 8), np.float32), np.zeros((count, 8), np.int32)
    return TransitionBatch.from_values((S, A, ones, Rn, In, S_next, None, None, ones, idx, None))


def part(batch, rows):
    return jax.tree.map(lambda leaf: leaf[rows], batch)


def assert_close(left, right):
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_one_call_with_several_batches_is_several_calls_with_one(agent):
    together, apart, data = Learner(agent, 3), Learner(agent, 3), batches(4)
    at_once = together.learn(data)
    one_by_one = [apart.learn(part(data, slice(i, i + 1))) for i in range(4)]
    assert at_once.updates == one_by_one[-1].updates == 4
    np.testing.assert_allclose(at_once.errors, np.concatenate([x.errors for x in one_by_one]), rtol=1e-4, atol=1e-6)
    assert at_once.metrics["loss"] == pytest.approx(np.mean([x.metrics["loss"] for x in one_by_one]), rel=1e-4)
    assert_close(together.arrays(), apart.arrays())


def test_a_learner_that_goes_on_from_what_another_one_published_learns_alike(agent):
    unbroken, data = Learner(agent, 3), batches(4)
    begun = Learner(agent, 3)
    learned = begun.learn(part(data, slice(2)))
    resumed = Learner(agent, 3, (begun.arrays(), learned.updates))
    assert unbroken.learn(data).updates == resumed.learn(part(data, slice(2, 4))).updates
    assert_close(unbroken.arrays(), resumed.arrays())
    fresh = Learner(agent, 3).arrays()
    assert any(not np.allclose(fresh[name], leaf) for name, leaf in unbroken.arrays().items())
