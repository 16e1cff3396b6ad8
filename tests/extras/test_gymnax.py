"""Against the real gymnax."""

import functools

import gymnasium
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import triax
from triax.envs import AutoReset, GymnaxEnv, make

KEY = jax.random.PRNGKey(0)
NAMES = [name for name in gymnax.registered_envs if not name.startswith("MNIST")]  # which downloads its digits
quick_jit = functools.partial(
    jax.jit,
    compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
)


def described(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree)


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Pendulum-v1"])
def test_steps_are_those_of_gymnax_up_to_its_automatic_reset(name):
    """gymnax' own step returns six values; these environments are deterministic."""
    env = make(f"gymnax:{name}", params={"max_steps_in_episode": 12})
    theirs = quick_jit(lambda state, a: env.env.step(KEY, state.inner.env, a, env.params))
    ours, state = quick_jit(env.step), env.reset(KEY)
    ends = []
    for a in np.random.default_rng(0).integers(2, size=12):
        a = a if env.action_space.shape == () else np.full(env.action_space.shape, a - 0.5, np.float32)
        _, _, reward, terminated, truncated, info = theirs(state, a)
        state = ours(state, a)
        np.testing.assert_allclose(state.final_obs, info["final_observation"], rtol=1e-6)
        np.testing.assert_allclose(state.reward, reward, rtol=1e-6)
        assert bool(state.terminated) == bool(terminated)
        assert bool(state.truncated) == (bool(truncated) and not bool(terminated))
        ends.append((bool(state.terminated), bool(state.truncated)))
    assert ends[-1] == (False, True)


def test_a_fall_terminates_and_never_truncates():
    env = make("gymnax:CartPole-v1", params={"max_steps_in_episode": 500})
    step, state = quick_jit(env.step), env.reset(KEY)
    for _ in range(30):
        state = step(state, 1)
        if bool(state.done):
            break
    assert bool(state.terminated) and not bool(state.truncated)


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_keeps_structure_and_dtypes(name):
    env = make(f"gymnax:{name}")
    first = jax.eval_shape(env.reset, KEY)
    assert described(jax.eval_shape(env.step, first, env.action_space.sample())) == described(first)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(first))
    assert first.reward.dtype == jnp.float32


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FourRooms-misc", "FrozenLake-misc", "Catch-bsuite"])
def test_observations_are_members_of_the_space(name):
    env = make(f"gymnax:{name}")
    state = env.reset(KEY)
    for _ in range(3):
        obs = np.asarray(state.obs)
        assert obs in env.observation_space, (obs, env.observation_space)
        state = env.step(state, env.action_space.sample())


def test_spaces_are_gymnasiums_own():
    for name in ("CartPole-v1", "Pendulum-v1"):
        ours, theirs = make(f"gymnax:{name}"), gymnasium.make(name)
        assert ours.observation_space == theirs.observation_space
        assert ours.action_space == theirs.action_space
    env = make("gymnax:CartPole-v1")
    assert (env.observation_size, env.action_size) == (4, 2)
    assert make("gymnax:Pendulum-v1").action_size == 1
    assert make("gymnax:Breakout-MinAtar").observation_size == (10, 10, 4)


def test_composite_spaces_are_converted_part_by_part():
    boxes = gymnax.environments.spaces.Box(-1.0, 1.0, (2,)), gymnax.environments.spaces.Discrete(3)

    class Composite(gymnax.environments.classic_control.cartpole.CartPole):
        def reset_env(self, key, params):
            obs, state = super().reset_env(key, params)
            return {"box": obs[:2], "pair": (obs[2:], 0)}, state

        def observation_space(self, params):
            pair = gymnax.environments.spaces.Tuple(boxes)
            return gymnax.environments.spaces.Dict({"box": boxes[0], "pair": pair})

    box = gymnasium.spaces.Box(-1, 1, (2,))
    expected = gymnasium.spaces.Dict({"box": box, "pair": gymnasium.spaces.Tuple([box, gymnasium.spaces.Discrete(3)])})
    assert GymnaxEnv(Composite()).observation_space == expected


def test_a_second_step_compiles_nothing_and_a_rollout_is_one_scan():  # nnx-ppo F42
    env = AutoReset(make("gymnax:CartPole-v1"))
    step, state = quick_jit(env.step), env.reset(KEY)
    for _ in range(3):
        state = step(state, 0)
    assert step._cache_size() == 1

    @quick_jit
    def rollout(rngs):
        first = jax.vmap(env.reset)(rngs)

        def act(state, _):
            state = jax.vmap(env.step)(state, jnp.ones(8, jnp.int32))
            return state, state

        return jax.lax.scan(act, first, None, 40)[1]

    states = rollout(jax.random.split(KEY, 8))
    assert states.terminated.any(axis=0).all()
    fallen = np.abs(states.final_obs[..., 2]) > 12 * 2 * np.pi / 360
    np.testing.assert_array_equal(states.terminated, fallen)
    starts = states.obs[states.done]
    assert np.abs(starts).max() <= 0.05 and len(np.unique(starts, axis=0)) == len(starts)


def test_what_gymnax_calls_info_is_metrics_of_the_step():
    env = AutoReset(make("gymnax:CartPole-v1"))
    state = env.reset(KEY)
    assert set(state.metrics) == {"discount"}
    step = quick_jit(env.step)
    for _ in range(30):
        state = step(state, 1)
        if bool(state.done):
            break
    assert float(state.metrics["discount"]) == 0.0  # of the step that ended the episode


def test_approximators_take_it():
    class Linear(nnx.Module):
        def __init__(self, rngs):
            self.layer = nnx.Linear(4, 2, rngs=rngs)

        def __call__(self, S, is_training):
            return self.layer(S)

    env = make("gymnax:CartPole-v1")
    q = triax.Q(Linear, env, random_seed=0)
    assert q(np.asarray(env.reset(KEY).obs)).shape == (2,)


def test_parameters_and_arguments_are_passed():
    env = make("gymnax:DeepSea-bsuite", size=4, params={"deterministic": False})
    assert env.observation_space.shape == (4, 4) and env.params.deterministic is False


def test_what_gymnax_does_not_know_is_refused_by_name():
    with pytest.raises(ValueError, match=r"no environment 'CartPole-v0'. Try one of \['CartPole-v1'"):
        make("gymnax:CartPole-v0")
    with pytest.raises(ValueError, match=r"CartPole-v1 has no parameters \['length_of_pole'\]; it has \['max_steps"):
        make("gymnax:CartPole-v1", params={"length_of_pole": 1.0})
    with pytest.raises(TypeError, match=r"got tuple without reset.*gymnax\.make\('CartPole-v1'\)"):
        GymnaxEnv(gymnax.make("CartPole-v1"))


def test_a_missing_dependency_of_gymnax_names_the_extra(monkeypatch):
    import sys

    for module in [module for module in sys.modules if module.split(".")[0] == "gymnax"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "seaborn", None)
    monkeypatch.setitem(sys.modules, "six", None)
    monkeypatch.setitem(sys.modules, "six.moves", None)
    with pytest.raises(triax.core.MissingExtraError, match=r"needs the package.*triax\[gymnax\]"):
        make("gymnax:CartPole-v1")
