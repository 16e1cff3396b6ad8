"""Evaluation counts every episode of each environment once, however long, with its own memory."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from compilations import counted_compilations
from scheduled_episodes import Scheduled
from triax.loops.vector_evaluation import evaluate_agent

KEY = jax.random.PRNGKey(0)


class Rewarding(Scheduled):
    """The reward is the action."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float(action), terminated, truncated, info


class Remembering:
    """Its state says after how many steps of an episode it goes right; when it explores, it always does."""

    def init(self, key):
        return jnp.int32(1)

    def initial_carry(self, state, batch_size, key):
        return jnp.zeros(batch_size, jnp.int32)

    def reset_carry(self, state, carry, done, key):
        return jnp.where(done, 0, carry)

    def act(self, state, observation, carry, key, explore=True):
        right = jnp.ones_like(carry, bool) if explore else carry >= state
        return right.astype(jnp.int32), carry + 1, ()

    def learn(self, state, experience, key):
        return state, {}


AGENT = Remembering()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_environment_plays_its_share_however_long_episodes_are(mode):
    schedules = [[(2, "both"), (5, "truncated")], [(20, "terminated"), (30, "truncated")], [(1, "truncated")]]
    env = SyncVectorEnv([lambda s=s: Rewarding(s) for s in schedules], autoreset_mode=mode)
    results = evaluate_agent(AGENT, jnp.int32(1), env, num_episodes=7, key=KEY)
    lengths = [2, 5, 2, 20, 30, 1, 1]
    np.testing.assert_array_equal(results.lengths, lengths)
    np.testing.assert_array_equal(results.returns, np.array(lengths) - 1)


def test_one_environment_plays_all_and_a_second_evaluation_compiles_nothing():
    env = Rewarding([(3, "terminated"), (4, "truncated")])
    state = jnp.int32(2)
    with counted_compilations() as count:
        results = evaluate_agent(AGENT, state, env, num_episodes=3, key=KEY)
        before = count.compilations
        evaluate_agent(AGENT, state, Rewarding([(5, "both")]), num_episodes=2, key=KEY)
        assert count.compilations == before
    np.testing.assert_array_equal(results.returns, [1, 2, 1])


def test_the_key_decides_how_episodes_begin():
    env = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    state = jnp.int32(3)
    first, same, other = (
        evaluate_agent(AGENT, state, env, num_episodes=6, key=jax.random.PRNGKey(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.lengths, same.lengths)
    assert first.lengths.tolist() != other.lengths.tolist()


def test_refuses_no_episodes():
    with pytest.raises(ValueError, match="num_episodes must be at least 1; got 0"):
        evaluate_agent(AGENT, jnp.int32(0), Rewarding([(1, "both")]), num_episodes=0, key=KEY)
