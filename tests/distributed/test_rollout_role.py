import jax
import numpy as np
import pytest

from triax.agents import QLearningConfig
from triax.agents.off_policy import PRIORITIES, with_hyperparams
from triax.core.leaves import named_leaves, to_numpy
from triax.distributed.replay_example import example_batch
from triax.distributed.rollout_role import Rollouts

from .agents import CARTPOLE, make_small


@pytest.fixture(scope="module")
def agent():
    return CARTPOLE.agent()


def rollouts(agent, num_envs=1, epsilon=0.5, seed=0):
    made = Rollouts(agent, CARTPOLE.envs(num_envs), seed, epsilon)
    state = agent.init(jax.random.key(1))
    made.load(to_numpy(named_leaves(state)))
    return made, state


def test_every_step_becomes_a_transition_that_leads_to_the_next(agent):
    worker, _ = rollouts(agent, num_envs=2)
    batch, errors, gathered = worker.gather(30)
    assert gathered.steps == gathered.rows == batch.batch_size == len(errors) == 60
    followed = ended = 0
    for row in range(58):  # those of the two environments alternate
        is_next = np.array_equal(batch.S_next[row], batch.S[row + 2])
        followed, ended = followed + is_next, ended + (batch.In[row] == 0)
        assert is_next or batch.In[row] == 0  # no episode of chance is as long as the time limit
    assert followed and ended
    assert len(gathered.returns) == np.sum(batch.In == 0)
    assert gathered.returns == gathered.lengths


def test_episodes_go_on_from_one_call_to_the_next(agent):
    whole, _ = rollouts(agent)
    parts, _ = rollouts(agent)
    expected = whole.gather(40)[0]
    first, second = parts.gather(15)[0], parts.gather(25)[0]
    np.testing.assert_allclose(np.concatenate([first.S, second.S]), expected.S, rtol=1e-6)


def test_errors_are_what_learning_would_say(agent):
    worker, state = rollouts(agent)
    batch, errors, _ = worker.gather(20)
    priorities = agent.learn(state, batch, jax.random.key(0))[1][PRIORITIES]
    np.testing.assert_allclose(errors, np.abs(priorities), rtol=1e-5)
    assert np.ptp(errors) > 0


def test_each_worker_explores_by_its_own_epsilon(agent):
    shares = []
    for epsilon in (0.0, 0.5, 1.0):
        worker, state = rollouts(agent, num_envs=4, epsilon=epsilon)
        batch = worker.gather(150)[0]
        state = with_hyperparams(state, epsilon_start=0.0)
        greedy = agent.act(state, batch.S, (), jax.random.key(0), explore=False)[0]
        shares.append(np.mean(np.asarray(greedy) == batch.A))
    np.testing.assert_allclose(shares, [1.0, 0.75, 0.5], atol=0.07)


def test_returns_over_several_steps_come_later_and_all_of_them(agent):
    env = CARTPOLE.make_env()
    worker, _ = rollouts(make_small(env, QLearningConfig(alpha=0.6, hidden=(8,), n_step=3, gamma=0.5)))
    batch, _, gathered = worker.gather(60)
    assert gathered.steps - 2 <= gathered.rows <= gathered.steps
    inner = batch.In > 0
    np.testing.assert_allclose(batch.Rn[inner], 1.75)
    np.testing.assert_allclose(batch.In[inner], 0.125)


def test_agents_that_learn_from_the_next_action_are_told_it():
    sarsa = make_small(CARTPOLE.make_env(), QLearningConfig(alpha=0.6, hidden=(8,), rule="sarsa"))
    worker, _ = rollouts(sarsa)
    batch, errors, gathered = worker.gather(40)
    assert gathered.rows == len(errors) in (39, 40)
    inner = np.flatnonzero(batch.In[:-1] > 0)
    assert len(inner) > 20
    np.testing.assert_array_equal(batch.A_next[inner], batch.A[inner + 1])
    np.testing.assert_array_equal(batch.S_next[inner], batch.S[inner + 1])
    assert np.isnan(batch.logP_next[batch.In == 0]).all()
    example = example_batch(CARTPOLE, sarsa, {})
    assert jax.tree.structure(example) == jax.tree.structure(batch)
    assert [leaf.shape[1:] for leaf in jax.tree.leaves(example)] == [leaf.shape[1:] for leaf in jax.tree.leaves(batch)]


def test_evaluation_plays_whole_episodes_and_leaves_the_next_chunk_clean(agent):
    worker, _ = rollouts(agent, num_envs=2)
    worker.gather(5)
    returns = worker.evaluate(3, seed=7)
    assert returns.shape == (3,)
    assert (returns >= 8).all()
    batch = worker.gather(1)[0]
    assert (np.abs(batch.S) <= 0.05).all()  # where CartPole begins
