import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from algorithms.small import ENV, Counter, CounterNet, recurrent_net, weights_of
from compilations import counted_compilations
from jax_envs import PlainWalk
from triax.algorithms import eval_rollout_for_render_scan, record_activations_rollout, unstack_trajectory
from triax.core.keys import fold_name
from triax.envs import AutoReset
from triax.networks import PPONetworkOutput, StatefulModule, Stateless

KEY = jax.random.key(5)


def test_memory_and_environment_begin_anew_together():  # F5
    states, final, reward = eval_rollout_for_render_scan(Counter(), CounterNet(), 60, KEY)
    steps, lengths = np.asarray(states.inner["steps"]), np.asarray(states.inner["length"])
    assert 5 <= np.sum(steps == 0) <= 20  # several episodes
    ended = steps[1:] == 0
    np.testing.assert_array_equal(steps[:-1][ended] + 1, lengths[:-1][ended])
    np.testing.assert_array_equal(steps[1:][~ended], steps[:-1][~ended] + 1)
    np.testing.assert_array_equal(states.reward[1:], 1.0)  # the network counted from each reset
    assert reward == lengths[0] and final.reward == 1.0
    assert len(set(lengths)) > 2  # F18


class WalkRight(StatefulModule):
    def __call__(self, state, x, rollout_extras=None):
        ones = jnp.ones_like(x)
        return Stateless(lambda x: PPONetworkOutput(ones, x[:, 0], x[:, 0]))((), x)


@pytest.mark.parametrize("wrap", [lambda env: env, AutoReset])
def test_states_are_those_that_the_environment_draws(wrap):  # F53
    env = wrap(PlainWalk())
    states, final, reward = eval_rollout_for_render_scan(env, WalkRight(), 5, KEY)
    trajectory = unstack_trajectory(states, final, 5)
    assert len(trajectory) == 6
    assert env.render(trajectory, height=2).shape == (6, 2, 1, 3)
    own = PlainWalk
    inner = env.env.env if wrap is AutoReset else env
    assert isinstance(inner, own)
    drawn = inner.drawn
    positions = np.array([state.obs[0] for state in drawn])
    assert [state.data for state in drawn] == [0, 1, 0, 1, 0, 1]
    np.testing.assert_allclose(positions[1::2], positions[::2] + 1)
    np.testing.assert_allclose(reward, 2 + 2 * np.asarray(drawn[0].info["bonus"]), rtol=1e-6)


def test_activations_are_those_of_a_call_by_hand():
    network = recurrent_net()
    before, mode = weights_of(network), network[1].components["action"][2].deterministic
    activations, dones = record_activations_rollout(ENV, network, 3, 6, KEY)
    assert dones.shape == (6, 3) and dones.dtype == jnp.float32
    leaves = jax.tree.leaves(activations)
    assert all(leaf.shape[:2] == (6, 3) for leaf in leaves)
    obs = jax.vmap(ENV.reset)(jax.random.split(fold_name(KEY, "envs"), 3)).obs
    hidden = recurrent_net()
    first = hidden[0]((), obs).output
    np.testing.assert_allclose(activations["normalizer_0"][0], first, rtol=1e-5)
    lstm = hidden[1].components["action"][0]
    told = lstm(lstm.initialize_state(3), first).output
    np.testing.assert_allclose(activations["ppo_adapter_1"]["action"]["lstm_0"][0], told, rtol=1e-5)
    action = activations["ppo_adapter_1"]["action"]["normal_tanh_sampler_2"]["action"]
    mean = activations["ppo_adapter_1"]["action"]["dense_1"][..., :2]
    np.testing.assert_allclose(action, np.tanh(mean), rtol=1e-5)  # in evaluation mode
    for a, b in zip(before, weights_of(network), strict=True):
        np.testing.assert_array_equal(a, b)
    assert network[1].components["action"][2].deterministic == mode


def test_dones_say_that_an_episode_was_over_before_the_step():
    activations, dones = record_activations_rollout(Counter(), CounterNet(), 8, 12, KEY)
    lengths = np.sum(np.asarray(dones) == 0, axis=0)
    assert set(lengths) <= set(range(3, 10)) and len(set(lengths)) > 1
    np.testing.assert_array_equal(np.sort(dones, axis=0), dones)
    np.testing.assert_array_equal(activations.actions[:, 0], np.arange(12))  # nothing is reset


def test_a_second_look_at_other_weights_compiles_nothing():
    record_activations_rollout(ENV, recurrent_net(), 3, 6, KEY)
    network = recurrent_net(1)
    key = jax.random.key(8)
    with counted_compilations() as count, warnings.catch_warnings():
        record_activations_rollout(ENV, network, 3, 6, key)
    assert count.compilations == 0
    assert isinstance(network, nnx.Module)
