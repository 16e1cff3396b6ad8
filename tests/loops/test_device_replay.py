"""Replay on the device equals a NumPy ring, whatever ends episodes, and costs the same whatever its size."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import Step, n_step_parts
from triax.loops.device_replay import DeviceReplay, Experience
from triax.loops.device_sum_tree import DeviceSumTree

NUM_ENVS = 2


def experience_at(t: int, rng: np.random.Generator, num_envs: int = NUM_ENVS) -> Experience:
    """Observations tell step and environment; ends are random, never of both kinds."""
    ends = rng.integers(0, 4, num_envs)
    name = 100.0 * t + np.arange(num_envs)
    return Experience(
        observation={"x": jnp.asarray(name[:, None], jnp.float32)},
        action=jnp.asarray(rng.integers(0, 3, num_envs), jnp.int32),
        reward=jnp.asarray(rng.normal(size=num_envs), jnp.float32),
        terminated=jnp.asarray(ends == 0),
        truncated=jnp.asarray(ends == 1),
        next_observation={"x": jnp.asarray(name[:, None] + 0.5, jnp.float32)},
        carry=jnp.asarray(-name[:, None], jnp.float32),
    )


@functools.lru_cache
def jitted(replay: DeviceReplay):
    return jax.jit(replay.add), jax.jit(replay.sample, static_argnums=3), jax.jit(replay.set_priorities)


def filled(replay: DeviceReplay, steps: int, seed: int):
    rng = np.random.default_rng(seed)
    history = [experience_at(t, rng, replay.num_envs) for t in range(steps)]
    state = replay.init(history[0])
    for experience in history:
        state = jitted(replay)[0](*state, experience)
    return *state, history


def oracle(history, replay, name):
    """The n-step transition that begins with the observation ``name``."""
    first, env = divmod(int(name), 100)
    steps = [
        Step(float(e.reward[env]), 0, 0, bool(e.terminated[env]), bool(e.truncated[env]))
        for e in history[first : first + replay.window]
    ]
    Rn, In, taken = n_step_parts(steps, 0, replay.window, replay.gamma)
    return Rn, In, float(history[first + taken - 1].next_observation["x"][env, 0]), int(history[first].action[env])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1, 3]), st.sampled_from([3, 7, 20]), st.booleans())
def test_transitions_are_those_of_an_oracle_on_episodes_that_terminate_and_truncate(seed, window, steps, prioritized):
    replay = DeviceReplay(15, NUM_ENVS, window, gamma=0.9, alpha=0.7 if prioritized else None)
    stored, cursor, history = filled(replay, steps, seed)
    batch = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(seed), 32)
    kept = range(max(0, steps - replay.num_steps), steps - window + 1)
    for name, A, Rn, In, following in zip(
        np.ravel(batch.S["x"]), batch.A, batch.Rn, batch.In, np.ravel(batch.S_next["x"]), strict=True
    ):
        assert int(name) // 100 in kept
        np.testing.assert_allclose((Rn, In, following, A), oracle(history, replay, name), rtol=1e-5, atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1, 3]), st.sampled_from([4, 20]), st.booleans())
def test_the_action_that_followed_is_known_unless_the_episode_was_truncated(seed, window, steps, prioritized):
    replay = DeviceReplay(15, NUM_ENVS, window, gamma=0.9, alpha=0.7 if prioritized else None, next_actions=True)
    stored, cursor, history = filled(replay, steps, seed)
    batch = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(seed), 32)
    kept = range(max(0, steps - replay.num_steps), steps - window)  # the step after the window is there too
    for name, In, following, A_next, logP_next in zip(
        np.ravel(batch.S["x"]), batch.In, np.ravel(batch.S_next["x"]), batch.A_next, batch.logP_next, strict=True
    ):
        assert int(name) // 100 in kept
        last, env = divmod(int(following), 100)
        assert np.isnan(logP_next) == bool(history[last].terminated[env] | history[last].truncated[env])
        assert (In == 0) == bool(history[last].terminated[env])
        assert A_next == history[last + 1].action[env]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([4, 13]))
def test_sequences_are_stretches_of_one_environment_with_the_memory_at_their_start(seed, steps):
    replay = DeviceReplay(15, NUM_ENVS, 4, sequences=True, burn_in=1)
    stored, cursor, history = filled(replay, steps, seed)
    sequence = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(seed), 16)
    assert sequence.R.shape == (4, 16) and sequence.burn_in == 1
    for b, name in enumerate(np.asarray(sequence.S["x"])[0, :, 0]):
        first, env = divmod(int(name), 100)
        assert max(0, steps - replay.num_steps) <= first <= steps - 4
        assert sequence.carry[b, 0] == -name
        for k in range(4):
            told = history[first + k]
            assert sequence.S["x"][k, b, 0] == told.observation["x"][env, 0]
            assert sequence.S_next["x"][k, b, 0] == told.next_observation["x"][env, 0]
            for row, field in ((sequence.R, told.reward), (sequence.A, told.action)):
                assert row[k, b] == field[env]
            assert sequence.terminated[k, b] == told.terminated[env]
            assert sequence.truncated[k, b] == told.truncated[env]


@pytest.mark.parametrize("window", [1, 3])
def test_every_window_in_the_buffer_is_drawn_equally_often(window):
    replay = DeviceReplay(12, NUM_ENVS, window)
    stored, cursor, _ = filled(replay, 9, 0)
    batch = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(1), 20_000)
    counts = np.unique(np.asarray(batch.S["x"]), return_counts=True)[1]
    assert len(counts) == replay.num_windows(cursor) == 2 * (6 - window + 1)
    np.testing.assert_allclose(counts / 20_000, 1 / len(counts), atol=0.01)


def test_windows_are_drawn_in_proportion_to_priorities_and_weighed_against_them():
    replay = DeviceReplay(12, NUM_ENVS, 2, alpha=0.5, beta=1.0)
    stored, cursor, _ = filled(replay, 9, 0)
    index = np.unique(jitted(replay)[1](stored, cursor, jax.random.PRNGKey(0), 500).idx)
    assert len(index) == replay.num_windows(cursor)
    errors = np.linspace(0.1, 4, len(index)).astype(np.float32)
    stored = jitted(replay)[2](stored, jnp.asarray(index), jnp.asarray(-errors))
    batch = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(1), 20_000)
    drawn, counts = np.unique(batch.idx, return_counts=True)
    expected = np.sqrt(errors + 1e-6)
    np.testing.assert_array_equal(drawn, index)
    np.testing.assert_allclose(counts / 20_000, expected / expected.sum(), rtol=2e-2)
    weights = dict(zip(np.asarray(batch.idx).tolist(), np.asarray(batch.W).tolist(), strict=True))
    np.testing.assert_allclose([weights[i] for i in index], expected.min() / expected, rtol=1e-4)


def test_huge_errors_leave_the_sum_of_priorities_finite_and_what_follows_them_drawable():
    replay = DeviceReplay(12, NUM_ENVS, 1, alpha=1.0)
    stored, cursor, _ = filled(replay, 9, 0)
    index = jnp.asarray(np.unique(jitted(replay)[1](stored, cursor, jax.random.PRNGKey(0), 500).idx))
    stored = jitted(replay)[2](stored, index, jnp.full(len(index), 3e38, jnp.float32))
    assert np.isfinite(jnp.sum(stored.priorities.levels[0])) and np.isfinite(stored.priorities.largest)
    drawn, counts = np.unique(jitted(replay)[1](stored, cursor, jax.random.PRNGKey(1), 20_000).idx, return_counts=True)
    np.testing.assert_array_equal(drawn, index)
    np.testing.assert_allclose(counts / 20_000, 1 / len(index), atol=0.01)


def with_idle_steps(steps: int, seed: int) -> list[Experience]:
    """As from a vector environment that resets in the next step: nobody takes the step after an episode's end."""
    rng, history, ended = np.random.default_rng(seed), [], np.zeros(NUM_ENVS, bool)
    for t in range(steps):
        told = experience_at(t, rng)
        terminated, truncated = np.asarray(told.terminated) & ~ended, np.asarray(told.truncated) | ended
        history.append(
            told._replace(
                reward=jnp.where(ended, 0.0, told.reward),
                terminated=jnp.asarray(terminated),
                truncated=jnp.asarray(truncated & ~terminated),
                weight=jnp.asarray(~ended, jnp.float32),
            )
        )
        ended = ~ended & (terminated | truncated)
    return history


def stored_with_idle_steps(replay: DeviceReplay, steps: int, seed: int):
    history = with_idle_steps(steps, seed)
    state = replay.init(history[0])
    for experience in history:
        state = jitted(replay)[0](*state, experience)
    return *state, history


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1, 3]), st.sampled_from([5, 20]), st.booleans())
def test_steps_that_nobody_took_count_for_nothing_and_no_return_runs_through_them(seed, window, steps, prioritized):
    """Pitfall 8."""
    replay = DeviceReplay(15, NUM_ENVS, window, gamma=0.9, alpha=0.7 if prioritized else None)
    stored, cursor, history = stored_with_idle_steps(replay, steps, seed)
    batch = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(seed), 32)
    for name, W, Rn, In, following in zip(
        np.ravel(batch.S["x"]), batch.W, batch.Rn, batch.In, np.ravel(batch.S_next["x"]), strict=True
    ):
        first, env = divmod(int(name), 100)
        assert (W > 0) == (history[first].weight[env] > 0)
        assert W > 0 or not prioritized
        expected = oracle(history, replay, name)
        np.testing.assert_allclose((Rn, In, following), expected[:3], rtol=1e-5, atol=1e-6)
        last = int(following) // 100
        assert all(history[t].weight[env] > 0 for t in range(first + 1, last + 1))


def test_uniform_draws_are_spread_evenly_over_the_steps_that_count():
    replay = DeviceReplay(60, NUM_ENVS)
    stored, cursor, history = stored_with_idle_steps(replay, 40, 3)
    batch = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(1), 30_000)
    counted = np.asarray(batch.W) > 0
    assert 0 < np.mean(~counted) < 0.01  # what redrawing leaves: here a third of the rows nobody took
    np.testing.assert_allclose(np.mean(batch.W), 1.0, rtol=1e-5)
    names, counts = np.unique(np.asarray(batch.S["x"])[counted], return_counts=True)
    kept = [100 * t + env for t in range(10, 40) for env in range(NUM_ENVS) if history[t].weight[env]]
    assert names.tolist() == kept and len(kept) < 50
    np.testing.assert_allclose(counts / counted.sum(), 1 / len(kept), rtol=0.15)


@pytest.mark.parametrize("alpha", [None, 1.0])
def test_each_step_of_a_sequence_that_nobody_took_weighs_nothing(alpha):
    replay = DeviceReplay(15, NUM_ENVS, 4, sequences=True, burn_in=1, alpha=alpha)
    stored, cursor, history = stored_with_idle_steps(replay, 13, 5)
    sequence = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(0), 16)
    taken = [
        [bool(history[int(name) // 100].weight[int(name) % 100]) for name in row]
        for row in np.asarray(sequence.S["x"])[..., 0]
    ]
    np.testing.assert_array_equal(np.asarray(sequence.W) > 0, taken)
    assert 0 < np.mean(taken) < 1
    if alpha is None:
        np.testing.assert_allclose(np.mean(sequence.W[1:]), 1.0, rtol=1e-6)


def test_a_sequence_in_which_nobody_took_a_step_after_the_burn_in_is_never_drawn():
    replay = DeviceReplay(15, NUM_ENVS, 2, sequences=True, burn_in=1, alpha=1.0)
    stored, cursor, _ = stored_with_idle_steps(replay, 13, 5)
    sequence = jitted(replay)[1](stored, cursor, jax.random.PRNGKey(0), 200)
    assert np.all(sequence.W[1] > 0) and not np.all(sequence.W[0] > 0)


def test_episodes_that_will_not_go_on_are_cut_after_the_newest_step():
    replay = DeviceReplay(15, NUM_ENVS, 2, gamma=0.9)
    rng = np.random.default_rng(0)
    none = jnp.zeros(NUM_ENVS, bool)
    history = [experience_at(t, rng)._replace(terminated=none, truncated=none) for t in range(3)]
    state = replay.init(history[0])
    add = jitted(replay)[0]
    for experience in history[:2]:
        state = add(*state, experience)
    stored = add(jax.jit(replay.cut)(*state), state[1], history[2])[0]
    batch = jax.jit(replay.windows)(stored, jnp.arange(4), jnp.ones(4))
    both, alone = history[0].reward + 0.9 * history[1].reward, history[1].reward
    np.testing.assert_allclose(batch.Rn, np.concatenate([both, alone]), rtol=1e-6)
    np.testing.assert_allclose(batch.In, [0.81, 0.81, 0.9, 0.9], rtol=1e-6)
    np.testing.assert_array_equal(batch.S_next["x"][2:], history[1].next_observation["x"])


def test_new_windows_get_the_largest_priority_and_overwritten_ones_are_gone():
    replay = DeviceReplay(10, NUM_ENVS, 2, alpha=1.0)
    stored, cursor, _ = filled(replay, 5, 0)
    stored = jitted(replay)[2](stored, jnp.arange(8), jnp.full(8, 7.0))
    rng = np.random.default_rng(1)
    stored, cursor = jitted(replay)[0](stored, cursor, experience_at(5, rng))
    leaves = np.ravel(stored.priorities.levels[0])[:10]
    np.testing.assert_allclose(leaves, [0, 0, 7, 7, 7, 7, 7, 7, 7, 7], rtol=1e-5)
    np.testing.assert_allclose(replay._tree.total(stored.priorities.levels), leaves.sum(), rtol=1e-6)


def test_a_priority_that_is_not_finite_becomes_the_largest_so_far():
    replay = DeviceReplay(8, NUM_ENVS, alpha=1.0)
    stored, *_ = filled(replay, 4, 0)
    stored = jitted(replay)[2](stored, jnp.array([0, 1, 2]), jnp.array([3.0, jnp.nan, jnp.inf]))
    assert np.isfinite(replay._tree.total(stored.priorities.levels))
    np.testing.assert_allclose(np.ravel(stored.priorities.levels[0])[1:3], 1.0)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(0, 1e4, width=32)), min_size=40, max_size=40).filter(any),
    st.lists(st.floats(0, 1, exclude_max=True, width=32), min_size=8, max_size=8),
)
def test_the_tree_finds_what_a_cumulated_sum_finds(values, shares):
    tree = DeviceSumTree(40)
    values = np.asarray(values, np.float32)
    levels = tree.write(tree.init(), jnp.arange(40), jnp.asarray(values))
    found = np.asarray(tree.find(levels, jnp.asarray(shares, jnp.float32)))
    cumulated = np.concatenate([[0], np.cumsum(values, dtype=np.float64)])
    slack = 1e-5 * cumulated[-1]
    for share, leaf in zip(np.asarray(shares, np.float64) * cumulated[-1], found, strict=True):
        assert values[leaf] > 0
        assert cumulated[leaf] - slack <= share <= cumulated[leaf + 1] + slack


@pytest.mark.parametrize("alpha", [None, 0.6])
def test_a_step_copies_no_buffer(alpha):
    """In the compiled scan nothing of the buffer's size is made but by writing in place."""
    replay = DeviceReplay(1 << 14, 1, alpha=alpha)
    example = experience_at(0, np.random.default_rng(0), 1)

    def step(state, key):
        stored, cursor = replay.add(*state, example)
        batch = replay.sample(stored, cursor, key, 8)
        stored = replay.set_priorities(stored, batch.idx, batch.Rn)
        return (stored, cursor), jnp.sum(batch.Rn)

    def program(state, key):
        return jax.lax.scan(step, state, jax.random.split(key, 5))

    state = replay.init(example)
    compiled = jax.jit(program, donate_argnums=0).lower(state, jax.random.PRNGKey(0)).compile()
    size = 1 << 14
    copies = re.findall(rf"= \w+\[{size}[^=]*? copy\(", compiled.as_text())
    assert not copies
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < 4 * size  # less than one leaf
    assert memory.alias_size_in_bytes >= 0.99 * memory.output_size_in_bytes - 100


def test_refuses_a_buffer_that_cannot_hold_a_window():
    with pytest.raises(ValueError, match="capacity must hold 3 steps of 4 environments, 12 transitions; got 11"):
        DeviceReplay(11, 4, 3)
