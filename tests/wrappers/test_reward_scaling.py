import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_envs import OnlyTimesOut, PlainState, PlainWalk, Walk
from triax.env_protocol import restart
from triax.envs import State
from triax.wrappers import EpisodeWrapper, RewardScalingWrapper

KEY = jax.random.PRNGKey(0)


@pytest.mark.parametrize(("make", "kind"), [(Walk, State), (PlainWalk, PlainState)])
def test_rewards_are_scaled_and_the_rest_stays(make, kind):
    env, scaled = make(), RewardScalingWrapper(make(), 0.1)
    state, other = env.step(env.reset(KEY), np.ones(1)), scaled.step(scaled.reset(KEY), np.ones(1))
    assert isinstance(other, kind)
    np.testing.assert_allclose(other.reward, 0.1 * state.reward, rtol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, other.replace(reward=0.0), state.replace(reward=0.0))


def test_each_part_of_a_dict_of_rewards_is_scaled():  # nnx-ppo F53
    env = RewardScalingWrapper(OnlyTimesOut(), -2)
    reward = env.step(env.reset(KEY), 0).reward
    assert {name: float(part) for name, part in reward.items()} == {"a": -2.0, "b": -4.0}


def test_the_reward_of_a_reset_is_scaled_and_float32():
    class Starts(PlainWalk):
        def reset(self, rng):
            return super().reset(rng).replace(reward=3)

    for begin in (RewardScalingWrapper(Starts(), 2).reset, lambda rng: restart(RewardScalingWrapper(Starts(), 2), rng)):
        assert float(begin(KEY).reward) == 6.0 and begin(KEY).reward.dtype == jnp.float32


def test_restarting_is_that_of_the_environment():
    env = RewardScalingWrapper(EpisodeWrapper(Walk(), 100), 1.0)
    rngs = jax.random.split(KEY, 20)
    assert jax.vmap(env.reset)(rngs).info["step_counter"].any()
    assert not jax.vmap(env.restart)(rngs).info["step_counter"].any()


@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_a_scale_that_is_not_finite_is_refused(scale):
    with pytest.raises(ValueError, match=f"must be finite; got {scale}"):
        RewardScalingWrapper(Walk(), scale)
