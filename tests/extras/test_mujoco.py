"""Against the real Brax and MuJoCo Playground."""

import functools

import brax.envs
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.envs import AutoReset, adapt, make

KEY = jax.random.PRNGKey(0)
quick_jit = functools.partial(
    jax.jit,
    compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
)


def described(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree)


def rollout(env, num_envs, num_steps):
    @quick_jit
    def run(rngs, actions):
        first = jax.vmap(env.reset)(rngs)

        def step(state, action):
            state = jax.vmap(env.step)(state, action)
            return state, state.replace(inner=())

        return first, jax.lax.scan(step, first, actions)[1]

    actions = np.random.default_rng(0).uniform(-1, 1, (num_steps, num_envs, env.action_size)).astype(np.float32)
    return jax.device_get(run(jax.random.split(KEY, num_envs), actions))


def test_brax_time_limits_truncate_and_begin_anew():
    """This environment of Brax' own tests never ends by itself."""
    env = AutoReset(make("brax:fast", episode_length=4))
    first, states = rollout(env, 2, 9)
    np.testing.assert_array_equal(states.truncated[:, 0], np.arange(9) % 4 == 3)
    assert not states.terminated.any()
    np.testing.assert_array_equal(states.info["steps"][:, 0], np.where(np.arange(9) % 4 == 3, 0, np.arange(9) % 4 + 1))
    np.testing.assert_array_equal(states.obs[3], first.obs)
    assert (states.final_obs[3] != states.obs[3]).any()


def test_a_fallen_pole_of_brax_terminates():
    """Its ``info["time_out"]`` says otherwise."""
    env = make("brax:inverted_pendulum", backend="generalized")
    step, state = quick_jit(env.step), quick_jit(env.reset)(KEY)
    described_first = described(state)
    for _ in range(100):
        state = step(state, jnp.ones(1))
        if bool(state.done):
            break
    assert bool(state.terminated) and not bool(state.truncated) and float(state.info["time_out"]) == 1
    assert described(state) == described_first and step._cache_size() == 1
    assert env.observation_space.shape == (4,) and env.action_space.shape == (1,)


def test_brax_environments_that_reset_themselves_are_refused():
    env = adapt(brax.envs.create("fast", auto_reset=True))
    with pytest.raises(ValueError, match="auto_reset=False"):
        env.reset(KEY)


def test_an_unknown_name_of_brax_is_refused():
    with pytest.raises(ValueError, match="Brax has no environment 'no_such'"):
        make("brax:no_such")


def test_brax_draws_its_pipeline_states():
    env = make("brax:fast")
    drawn = []
    env.env.env.render = lambda trajectory, **kwargs: drawn.extend(trajectory)
    state = env.reset(KEY)
    env.render([state, env.step(state, jnp.ones(1))])
    assert [type(pipeline_state) for pipeline_state in drawn] == [type(state.inner.pipeline_state)] * 2


@pytest.mark.parametrize("lazy", [False, True])
def test_playground_runs_in_a_scan_with_its_time_limit_and_fresh_resets(lazy):
    env = AutoReset(make("playground:CartpoleBalance", config_overrides={"impl": "jax"}, episode_length=3), lazy=lazy)
    first, states = rollout(env, 2, 4)
    np.testing.assert_array_equal(states.truncated[:, 0], [False, False, True, False])
    assert not states.terminated.any()
    assert described_shapes(states.final_obs) == (4, 2, 5)
    starts = np.concatenate([first.obs, states.obs[2]])
    assert len(np.unique(starts, axis=0)) == 4  # no cached first state
    assert set(states.metrics) and states.reward.dtype == np.float32


def described_shapes(array):
    return array.shape


def test_the_default_limit_of_playground_is_its_configs():
    env = make("playground:CartpoleBalance", config_overrides={"impl": "jax"})
    assert env.episode_length == 1000 and env.action_repeat == 1
    assert env.observation_size == 5 and env.observation_space.shape == (5,) and env.action_space.shape == (1,)
    assert env.dt == pytest.approx(0.01)


def test_an_unknown_name_of_playground_is_refused():
    with pytest.raises(ValueError, match="NoSuch"):
        make("playground:NoSuch")
