"""The off-policy loop on the device: what it stores, what it compiles, what it gives up, seeds side by side."""

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compilations import counted_compilations
from corridor import Corridor
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.core.modules import strong_copy
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig
from triax.reward_tracing import TransitionBatch

SMALL = QLearningConfig(hidden=(8,), batch_size=8, epsilon_updates=200)


@functools.lru_cache
def small_loop(num_seeds=None):
    config = OffPolicyConfig(num_envs=2, capacity=64, warm_up=40, steps_per_iteration=2, updates_per_iteration=2)
    return DeviceOffPolicy(Corridor(), QLearningAgent(Corridor(), SMALL), config, num_seeds=num_seeds)


def test_each_program_compiles_once_and_takes_over_the_memory_of_the_state():
    loop = DeviceOffPolicy(Corridor(), QLearningAgent(Corridor(), SMALL), OffPolicyConfig(capacity=64, warm_up=8))
    key = jax.random.PRNGKey(0)
    with counted_compilations() as count:
        state = loop.init(key)
        assert count.compilations == 1
        before = state
        state, _ = loop.run(state, 3)
        assert count.compilations == 2
        for iterations in (3, 1, 7):
            state, _ = loop.run(state, iterations)
        assert count.compilations == 2
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))


def test_an_iteration_copies_no_table_of_replay():
    """Which would make a step scale with the capacity: in the compiled loop tables are only written in place."""
    config = OffPolicyConfig(capacity=4096, warm_up=8)
    loop = DeviceOffPolicy(Corridor(), QLearningAgent(Corridor(), SMALL), config)
    state = loop.init(jax.random.PRNGKey(0))
    compiled = loop._jitted_run.lower(state, 3).compile().as_text()
    assert "[4096,14]" in compiled
    assert not re.findall(r"\[4096[0-9,]*\]\S* copy\(", compiled)


def test_stores_the_final_observation_of_every_episode_and_begins_the_next_one_afresh():
    """Also of truncated episodes, from which learning bootstraps."""
    loop = small_loop()
    state = loop.init(jax.random.PRNGKey(1))
    rows = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(32, 2, *leaf.shape[1:])[:20], state.stored.rows.tree())
    cells, following = rows.observation.argmax(-1), rows.next_observation.argmax(-1)
    np.testing.assert_array_equal(following, np.clip(cells + 2 * rows.action - 1, 0, 4))
    np.testing.assert_array_equal(rows.terminated, following == 4)
    done = rows.terminated | rows.truncated
    assert rows.terminated.any() and rows.truncated.any()
    assert not (rows.terminated & rows.truncated).any()
    goes_on = ~done[:-1]
    np.testing.assert_array_equal(cells[1:][goes_on], following[:-1][goes_on])
    assert set(cells[1:][~goes_on]) <= {0, 1}
    batch = loop.replay.windows(state.stored, jnp.arange(40), jnp.ones(40))
    assert isinstance(batch, TransitionBatch)
    np.testing.assert_allclose(batch.In, np.where(rows.terminated.reshape(-1), 0, 0.99))


def test_reports_returns_and_lengths_of_the_episodes_that_ended():
    loop = small_loop()
    state = loop.init(jax.random.PRNGKey(2))
    rows = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(32, 2, *leaf.shape[1:]), state.stored.rows.tree())
    state, metrics = loop.run(state, 5)
    later = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(32, 2, *leaf.shape[1:]), state.stored.rows.tree())
    reward = np.concatenate([rows.reward[:20], later.reward[20:30]])
    ends = np.concatenate([(rows.terminated | rows.truncated)[:20], (later.terminated | later.truncated)[20:30]])
    returns, lengths = [], []
    for env in range(2):
        bounds = [-1, *np.flatnonzero(ends[:, env])]
        for a, b in itertools.pairwise(bounds):
            returns.append(reward[a + 1 : b + 1, env].sum())
            lengths.append(b - a)
    assert metrics["episodes"] == len(returns)
    np.testing.assert_allclose(metrics["return"], np.mean(returns), rtol=1e-6)
    np.testing.assert_allclose(metrics["length"], np.mean(lengths), rtol=1e-6)


def test_seeds_side_by_side_learn_as_they_do_alone():
    keys = jax.random.split(jax.random.PRNGKey(3), 3)
    together, metrics = small_loop(3).run(small_loop(3).init(keys), 5)
    assert metrics["loss"].shape == (3,)
    assert together.cursor.position.shape == ()
    alone, own = small_loop().run(small_loop().init(keys[1]), 5)
    for a, b in zip(jax.tree.leaves(alone.agent), jax.tree.leaves(together.agent), strict=True):
        np.testing.assert_allclose(a, b[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(own["loss"], metrics["loss"][1], rtol=1e-3)


def test_as_many_updates_as_the_config_says():
    state, _ = small_loop().run(small_loop().init(jax.random.PRNGKey(0)), 7)
    assert state.agent.updates == 14
    assert state.cursor.position == (20 + 14) % 32


def test_refuses_a_warm_up_without_a_window():
    agent = QLearningAgent(Corridor(), QLearningConfig(n_step=4))
    with pytest.raises(ValueError, match="windows of 4 steps in 2 environments, at least 8 transitions; got 6"):
        DeviceOffPolicy(Corridor(), agent, OffPolicyConfig(num_envs=2, warm_up=6))


def test_keys_of_any_implementation_decide_all_that_is_drawn():
    loop = small_loop()

    def weights(seed):
        state, metrics = loop.run(loop.init(jax.random.key(seed, impl="rbg")), 3)
        assert metrics["skipped"] == 0
        return jax.tree.leaves(state.agent.online.params)

    first, again, other = weights(0), weights(0), weights(1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_metrics_are_means_over_the_iterations_of_a_call():
    loop = small_loop()
    begun = loop.init(jax.random.PRNGKey(0))
    state, singly = strong_copy(begun), []
    for _ in range(5):
        state, metrics = loop.run(state, 1)
        singly.append(metrics)
    together = loop.run(begun, 5)[1]
    for name in ("loss", "td_error", "grads_norm", "skipped"):
        np.testing.assert_allclose(together[name], np.mean([metrics[name] for metrics in singly]), rtol=1e-5, atol=1e-7)
    assert np.isnan(loop.run(state, 0)[1]["loss"])
