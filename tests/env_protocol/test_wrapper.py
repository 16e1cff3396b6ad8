import copy
import pickle

import gymnasium
import jax
import numpy as np
import pytest

from jax_envs import PlainWalk, Walk
from triax.env_protocol import EnvWrapper, RLEnv, restart

KEY = jax.random.key(0)


class Shifted(EnvWrapper):
    """Overrides ``reset`` alone."""

    def reset(self, rng):
        state = self.env.reset(rng)
        return state.replace(obs=state.obs + 100)


def test_everything_else_is_passed_on():  # nnx-ppo F53
    wrapped = EnvWrapper(EnvWrapper(PlainWalk()))
    assert wrapped.observation_size == 1 and wrapped.action_size == 1
    assert wrapped.render([None], height=5).shape == (1, 5, 1, 3)
    assert isinstance(wrapped, RLEnv)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = wrapped.no_such_thing


def test_reset_and_step_are_those_of_the_environment():
    state = EnvWrapper(Walk()).step(EnvWrapper(Walk()).reset(KEY), np.ones(1))
    jax.tree.map(np.testing.assert_array_equal, state, Walk().step(Walk().reset(KEY), np.ones(1)))


def test_a_wrapper_that_overrides_reset_alone_restarts_the_same_way():
    assert float(restart(Shifted(Walk()), KEY).obs[0]) >= 100


def test_an_environment_without_restart_is_reset():
    np.testing.assert_array_equal(restart(Walk(), KEY).obs, Walk().reset(KEY).obs)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_wrappers_can_be_copied_and_pickled(duplicate):
    again = duplicate(EnvWrapper(Walk()))
    np.testing.assert_array_equal(again.reset(KEY).obs, Walk().reset(KEY).obs)


def test_a_gymnasium_environment_is_refused_with_a_way_out():
    with pytest.raises(TypeError, match=r"EnvWrapper: env must be a JAX environment.*CartPole.*gymnax:CartPole-v1"):
        EnvWrapper(gymnasium.make("CartPole-v1"))


def test_what_cannot_step_is_refused():
    with pytest.raises(TypeError, match="got int without reset, step"):
        EnvWrapper(3)
