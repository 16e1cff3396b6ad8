import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from algorithms.small import ENV, Counter, CounterNet, TwoArm, recurrent_net, two_arm_net, weights_of
from compilations import counted_compilations
from jax_envs import PlainWalk
from triax.algorithms import LoggingLevel, eval_rollout
from triax.core.keys import fold_name
from triax.envs import AutoReset
from triax.networks import Dense, NormalTanhSampler, PPOAdapter, Sequential
from triax.wrappers import EpisodeWrapper

KEY = jax.random.key(3)
BOTH = LoggingLevel.NETWORK_METRICS | LoggingLevel.ENV_METRICS


def by_hand(env, network, n_envs, longest, key):
    """Rewards, lengths and mean distances of the episodes, each in a Python loop of its own."""
    network.eval()
    step = jax.jit(lambda carry, obs: network(carry, obs))
    found = []
    for reset_key in jax.random.split(fold_name(key, "envs"), n_envs):
        state, carry = env.reset(reset_key), network.initialize_state(1)
        rewards, distances, lengths = 0.0, 0.0, 0
        while lengths < longest:
            out = step(carry, state.obs[None])
            carry, state = out.next_state, env.step(state, out.output.actions[0])
            rewards, distances, lengths = rewards + state.reward, distances + state.metrics["distance"], lengths + 1
            if state.done:
                break
        found.append((rewards, lengths, distances / lengths))
    return np.array(found, np.float64).T


def test_it_is_what_a_loop_over_episodes_finds():  # F6
    rewards, lengths, distances = by_hand(ENV, recurrent_net(), 12, 8, KEY)
    assert len(set(lengths)) > 1
    found = eval_rollout(ENV, recurrent_net(), 12, 8, KEY, (2.5, 50), LoggingLevel.ENV_METRICS)
    for name, expected in (("episode_reward", rewards), ("lifespan", lengths), ("env/distance", distances)):
        for part, value in (
            ("mean", np.mean(expected)),
            ("std", np.std(expected)),
            ("p2.5", np.percentile(expected, 2.5)),  # F56
            ("p50", np.median(expected)),
        ):
            np.testing.assert_allclose(found[f"eval/{name}/{part}"], value, rtol=1e-4, err_msg=f"{name}/{part}")
    assert len(found) == 12


def test_a_network_that_counts_earns_a_reward_in_each_step_until_the_end():  # F6
    found = eval_rollout(Counter(), CounterNet(), 20, 100, KEY, logging_level=BOTH)
    np.testing.assert_allclose(found["eval/episode_reward/mean"], found["eval/lifespan/mean"])
    np.testing.assert_allclose(found["eval/episode_reward/std"], found["eval/lifespan/std"], rtol=1e-5)
    assert 3 <= found["eval/lifespan/mean"] <= 9
    np.testing.assert_allclose(found["eval/net/count/mean"], (found["eval/lifespan/mean"] - 1) / 2, rtol=1e-5)
    assert found["eval/net/constant/mean"] == 1.0 and found["eval/net/constant/std"] == 0.0  # F33


def test_episodes_that_go_on_are_cut_at_the_longest():  # F6
    found = eval_rollout(Counter(), CounterNet(), 20, 2, KEY)
    assert found["eval/lifespan/mean"] == 2.0 and found["eval/episode_reward/mean"] == 2.0


def test_it_stops_when_all_have_ended():  # F46
    steps = []

    class Noisy(Counter):
        def step(self, state, action):
            jax.debug.callback(lambda done: steps.append(done), state.done)
            return super().step(state, action)

    found = eval_rollout(Noisy(), CounterNet(), 2, 10**6, KEY, (100,))
    jax.effects_barrier()
    assert len(steps) == 2 * found["eval/lifespan/p100"]


def test_each_reward_is_told_and_their_sum():
    found = eval_rollout(TwoArm(), two_arm_net(), 3, 9, KEY)
    assert set(found) == {
        f"eval/{name}/{part}"
        for name in ("episode_reward", "episode_reward/left", "episode_reward/right", "lifespan")
        for part in ("mean", "std")
    }
    parts = [found[f"eval/episode_reward/{arm}/mean"] for arm in ("left", "right")]
    np.testing.assert_allclose(sum(parts), found["eval/episode_reward/mean"], rtol=1e-5)
    assert found["eval/lifespan/mean"] == 4.0


def test_networks_are_left_as_they_were_and_the_key_decides_all():  # F17, F54
    network = recurrent_net()
    counts = jax.tree.leaves(nnx.state(network, nnx.RngCount))
    before, counted = weights_of(network), [int(count) for count in counts]
    found = [eval_rollout(ENV, network, 5, 8, key)["eval/episode_reward/mean"] for key in (KEY, KEY, jax.random.key(4))]
    network.eval()
    found.append(eval_rollout(ENV, network, 5, 8, KEY)["eval/episode_reward/mean"])
    assert found[0] == found[1] == found[3] != found[2]
    assert network[1].components["action"][2].deterministic
    assert [int(count) for count in jax.tree.leaves(nnx.state(network, nnx.RngCount))] == counted
    for a, b in zip(before, weights_of(network), strict=True):
        np.testing.assert_array_equal(a, b)


def test_samples_are_drawn_if_asked_for():
    rngs = nnx.Rngs(0)
    network = PPOAdapter(Sequential([Dense(2, 4, rngs), NormalTanhSampler(rngs, 0.0, min_std=5.0)]), Dense(2, 1, rngs))
    modes, samples = (eval_rollout(ENV, network, 8, 8, KEY, deterministic=mode) for mode in (True, False))
    assert modes["eval/episode_reward/mean"] != samples["eval/episode_reward/mean"]


def test_other_weights_lengths_and_keys_compile_nothing():
    network = recurrent_net(1)
    eval_rollout(ENV, recurrent_net(), 5, 8, jax.random.key(0))
    with counted_compilations() as count:
        eval_rollout(ENV, network, 5, 7, jax.random.key(8))
    assert count.compilations == 0


@pytest.mark.parametrize("wrap", [lambda env: env, AutoReset])
def test_any_environment_will_do(wrap):  # F53
    """States of its own, written carelessly, or one that resets itself."""

    def walk_right(x):
        from triax.networks import PPONetworkOutput

        return PPONetworkOutput(jnp.ones_like(x), jnp.zeros(x.shape[0]), jnp.zeros(x.shape[0]))

    found = eval_rollout(wrap(PlainWalk()), walk_right, 6, 10, KEY)
    assert found["eval/lifespan/mean"] == 2.0


def test_evaluated_episodes_are_whole_where_training_cuts_its_first():
    class Endless(Counter):
        def step(self, state, action):
            return state.next(state.obs, 1.0, False, state.inner)

    for wrap in (lambda env: env, AutoReset):
        found = eval_rollout(wrap(EpisodeWrapper(Endless(), 12)), CounterNet(), 16, 50, KEY)
        assert found["eval/lifespan/mean"] == 12.0


def test_misuse_is_told():
    with pytest.raises(ValueError, match="n_envs must be at least 1; got 0"):
        eval_rollout(ENV, recurrent_net(), 0, 5, KEY)
    with pytest.raises(TypeError, match="must give a PPONetworkOutput"):
        eval_rollout(ENV, Dense(2, 2, nnx.Rngs(0)), 2, 5, KEY)
