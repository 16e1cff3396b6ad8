import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_envs import OnlyTimesOut, PlainWalk, Walk
from triax.envs import AutoReset, State
from triax.wrappers import EpisodeWrapper, RewardScalingWrapper

BATCH, TIME = 5, 40


quick_jit = functools.partial(
    jax.jit,
    compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
)


@functools.partial(quick_jit, static_argnums=0)
def run(env, rng, actions):
    first = jax.vmap(env.reset)(jax.random.split(rng, BATCH))

    def step(state, action):
        state = jax.vmap(env.step)(state, action)
        return state, state

    return first, jax.lax.scan(step, first, actions)[1]


def rollout(env, actions, seed=0):
    """First states ``[B, ...]`` and states after each step ``[T, B, ...]``."""
    return jax.device_get(run(env, jax.random.PRNGKey(seed), actions))


EAGER, LAZY = AutoReset(Walk(), lazy=False), AutoReset(Walk(), lazy=True)


def random_actions(seed=0):
    return np.random.default_rng(seed).uniform(-0.5, 1, (TIME, BATCH, 1)).astype(np.float32)


@pytest.mark.parametrize("env", [EAGER, LAZY, AutoReset(PlainWalk())])
def test_a_rollout_is_a_chain_of_whole_episodes_with_their_final_observations(env):
    actions = random_actions()
    first, states = rollout(env, actions)
    bonuses = []
    for b in range(BATCH):
        obs, bonus = first.obs[b], first.info["bonus"][b]
        for t in range(TIME):
            reached = obs + actions[t, b]
            np.testing.assert_allclose(states.final_obs[t, b], reached, rtol=1e-6)
            np.testing.assert_allclose(states.reward[t, b], actions[t, b, 0] + bonus, rtol=1e-5)
            assert states.terminated[t, b] == states.done[t, b] == (states.final_obs[t, b, 0] >= 2)
            np.testing.assert_allclose(states.metrics["moved"][t, b], actions[t, b, 0])
            obs = states.obs[t, b]
            if states.done[t, b]:
                bonuses.append(bonus)
                bonus = states.info["bonus"][t, b]
                assert 0 <= obs[0] < 1
            else:
                np.testing.assert_array_equal(obs, states.final_obs[t, b])
            assert states.info["bonus"][t, b] == bonus
    assert len(bonuses) > 2 * BATCH
    assert len(set(bonuses)) == len(bonuses)  # each episode of each environment has its own draw


def test_resetting_lazily_gives_the_same_numbers():
    actions = random_actions(1)
    jax.tree.map(np.testing.assert_array_equal, rollout(EAGER, actions), rollout(LAZY, actions))


def test_other_seeds_draw_other_episodes():
    actions = random_actions()
    one, two = (rollout(EAGER, actions, seed)[1] for seed in (0, 1))
    assert not np.intersect1d(one.info["bonus"], two.info["bonus"]).size


def test_a_time_limit_keeps_the_real_last_observation():
    env = AutoReset(OnlyTimesOut(4))
    first, states = rollout(env, np.zeros((9, BATCH), np.int32))
    np.testing.assert_array_equal(states.final_obs["count"][:, 0], [1, 2, 3, 4, 1, 2, 3, 4, 1])
    np.testing.assert_array_equal(states.obs["count"][:, 0], [1, 2, 3, 0, 1, 2, 3, 0, 1])
    np.testing.assert_array_equal(states.truncated[:, 0], np.arange(9) % 4 == 3)
    assert not states.terminated.any()
    assert jax.tree.structure(first) == jax.tree.structure(states)


def test_a_lazy_reset_is_computed_only_where_an_episode_ends():  # nnx-ppo F45
    resets = []

    class Counted(Walk):
        def reset(self, rng):
            jax.debug.callback(lambda: resets.append(1))
            return super().reset(rng)

    env = AutoReset(Counted(), lazy=True)
    rngs = jax.random.split(jax.random.key(0), 3)
    state = quick_jit(jax.vmap(env.reset))(rngs)
    jax.effects_barrier()
    resets.clear()
    step = quick_jit(jax.vmap(env.step))
    state = step(state, jnp.zeros((3, 1)))
    jax.effects_barrier()
    assert not resets
    state = step(state, jnp.array([[0.0], [5.0], [0.0]]))
    jax.effects_barrier()
    assert resets
    np.testing.assert_array_equal(state.done, [False, True, False])


def test_lazy_resets_can_be_vmapped_twice_and_run_unmapped():
    rngs = jax.random.split(jax.random.PRNGKey(0), (2, 3))
    actions = jnp.array([[[0.0], [5.0], [0.0]], [[0.0], [0.0], [0.0]]])

    def begin(env):
        return lambda rng, a: env.step(env.reset(rng), a)

    lazy, eager = begin(AutoReset(Walk(), lazy=True)), begin(AutoReset(Walk(), lazy=False))
    twice, expected = (quick_jit(jax.vmap(jax.vmap(f)))(rngs, actions) for f in (lazy, eager))
    jax.tree.map(np.testing.assert_array_equal, twice, expected)
    alone = quick_jit(lazy)(rngs[0, 1], actions[0, 1])
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y[0, 1]), alone, expected)


def test_only_the_first_episodes_are_desynchronized():  # nnx-ppo F7
    env = AutoReset(EpisodeWrapper(OnlyTimesOut(1000), 10))
    _, states = rollout(env, np.zeros((TIME, BATCH), np.int32))
    lengths = set()
    for b in range(BATCH):
        ends = np.flatnonzero(states.done[:, b])
        lengths.add(ends[0] + 1)
        np.testing.assert_array_equal(np.diff(ends), 10)
    assert len(lengths) > 1 and min(lengths) > 5


def test_a_restart_begins_with_an_episode_as_all_later_ones():
    env = AutoReset(EpisodeWrapper(OnlyTimesOut(1000), 100))
    assert {int(env.restart(jax.random.key(i)).info["step_counter"]) for i in range(5)} == {0}


def test_other_wrappers_may_be_inside_and_outside():
    actions = random_actions()
    inside = rollout(AutoReset(RewardScalingWrapper(Walk(), 2.0)), actions)[1]
    outside = rollout(RewardScalingWrapper(EAGER, 2.0), actions)[1]
    np.testing.assert_allclose(inside.reward, outside.reward, rtol=1e-6)


def test_no_key_is_used_twice():
    with jax.debug_key_reuse(True):
        env = AutoReset(EpisodeWrapper(PlainWalk(), 3))
        rngs = jax.random.split(jax.random.key(0), 2)

        @jax.jit
        def run(rngs):
            state = jax.vmap(env.reset)(rngs)
            return jax.lax.scan(lambda s, _: (jax.vmap(env.step)(s, jnp.ones((2, 1))), None), state, None, 3)[0]

        assert isinstance(run(rngs), State)


def test_raw_keys_work_too():
    env = AutoReset(Walk())
    state = env.step(env.reset(jax.random.PRNGKey(0)), np.full(1, 9.0))
    assert bool(state.done) and float(state.obs[0]) < 1


def test_resetting_what_resets_itself_is_refused():
    with pytest.raises(ValueError, match="resets itself already"):
        AutoReset(RewardScalingWrapper(AutoReset(Walk()), 1.0))
    with pytest.raises(ValueError, match=r"Try AutoReset\(EpisodeWrapper"):
        EpisodeWrapper(AutoReset(Walk()), 10)


def test_states_are_drawn_by_the_environment_inside():
    plain = PlainWalk()
    env = AutoReset(plain)
    state = env.reset(jax.random.key(0))
    env.render([state, env.step(state, np.ones(1))])
    assert [int(s.data) for s in plain.drawn] == [0, 1]
