import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import triax
from jax_envs import OnlyTimesOut, PlainState, PlainWalk, Walk
from triax.env_protocol import EnvWrapper
from triax.envs import AutoReset, State, adapt

KEY = jax.random.PRNGKey(3)


def steps(env, actions, rng=KEY):
    state = env.reset(rng)
    states = [state]
    for action in actions:
        state = env.step(state, action)
        states.append(state)
    return states


@pytest.mark.parametrize("key", ["truncated", "truncation"])
def test_a_time_limit_is_no_termination_under_either_name(key):  # nnx-ppo F11, coax F88
    states = steps(adapt(OnlyTimesOut(3, key)), [0, 0, 0])
    assert [bool(s.truncated) for s in states] == [False, False, False, True]
    assert not any(bool(s.terminated) for s in states)


def test_without_such_a_key_an_end_is_a_termination():
    assert bool(steps(adapt(OnlyTimesOut(2, None)), [0, 0])[-1].terminated)


def test_the_numbers_are_those_of_the_environment():
    states = steps(adapt(PlainWalk()), [np.array([0.5])] * 5)
    start, bonus = jax.random.uniform(KEY, (2,))
    np.testing.assert_allclose([s.obs[0] for s in states], start + 0.5 * np.arange(6), rtol=1e-6)
    np.testing.assert_allclose([s.reward for s in states[1:]], 0.5 + bonus, rtol=1e-6)
    assert [bool(s.terminated) for s in states] == [float(s.obs[0]) >= 2 for s in states]
    assert any(bool(s.terminated) for s in states)


@pytest.mark.parametrize("make", [Walk, PlainWalk, OnlyTimesOut, lambda: AutoReset(PlainWalk())])
def test_reset_and_step_return_one_structure_and_a_second_step_compiles_nothing(make):  # nnx-ppo F32, F42
    env = make() if isinstance(make(), AutoReset) else adapt(make())
    step, reset = jax.jit(env.step), jax.jit(env.reset)
    action = env.action_space.sample()
    state = reset(KEY)
    described = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), state)
    for _ in range(3):
        state = step(state, action)
        assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), state) == described
    assert step._cache_size() == 1


def test_a_native_environment_that_forgets_dtypes_is_settled():
    class Careless(Walk):
        def reset(self, rng):
            return super().reset(rng).replace(obs=jnp.where(True, 0.5, 0.0)[None], reward=0.0)

    env = adapt(Careless())
    assert jax.eval_shape(env.reset, KEY).obs.weak_type is False
    jax.lax.scan(lambda state, _: (env.step(state, jnp.ones(1)), None), env.reset(KEY), None, 2)


def test_the_state_given_to_step_is_not_written_to():  # nnx-ppo F53
    env = adapt(PlainWalk())
    state = env.reset(KEY)
    bonus = state.inner.info["bonus"]
    env.step(state, np.ones(1))
    assert state.inner.info["bonus"] is bonus


def test_spaces_are_read_off_what_reset_returns():
    space = adapt(OnlyTimesOut()).observation_space
    assert space == gymnasium.spaces.Dict(
        {
            "count": gymnasium.spaces.Box(-(2**31), 2**31 - 1, (), np.int32),
            "flags": gymnasium.spaces.Tuple(
                [gymnasium.spaces.Box(0, 1, (2,), np.bool_), gymnasium.spaces.Box(0, 255, (2, 2), np.uint8)]
            ),
        }
    )
    assert adapt(PlainWalk()).observation_space == gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    assert adapt(PlainWalk()).action_space == gymnasium.spaces.Box(-1, 1, (1,))


def test_declared_and_given_spaces_are_kept():
    given = gymnasium.spaces.Box(0, 3, (1,))
    assert adapt(Walk()).observation_space is Walk.observation_space
    assert adapt(Walk(), observation_space=given).observation_space is given
    assert adapt(adapt(Walk()), action_space=given).action_space is given


def test_approximators_take_a_jax_environment():
    class Linear(nnx.Module):
        def __init__(self, rngs):
            self.layer = nnx.Linear(2, 1, rngs=rngs)

        def __call__(self, S, A, is_training):
            return self.layer(jnp.concatenate([S, A], axis=-1)).squeeze(-1)

    env = adapt(PlainWalk())
    q = triax.Q(Linear, env, random_seed=0)
    assert np.isfinite(q(np.asarray(env.reset(KEY).obs), env.action_space.sample()))


def test_unknown_actions_are_an_error_only_when_asked_for():
    class Unknown(OnlyTimesOut):
        action_space = None

    env = adapt(Unknown())
    env.reset(KEY)
    with pytest.raises(TypeError, match=r"Unknown: its actions are unknown.*adapt\(env, action_space"):
        _ = env.action_space


def test_an_observation_of_a_strange_container_asks_for_a_space():
    class Strange(PlainWalk):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(obs=PlainState(1, 2, 3, 4, 5, 6))

    with pytest.raises(TypeError, match=r"got PlainState\. Try .*observation_space"):
        _ = adapt(Strange()).observation_space


def test_an_environment_that_resets_itself_is_refused():
    class SelfResetting(PlainWalk):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(info={"first_obs": state.obs})

    with pytest.raises(ValueError, match=r"hides final observations.*auto_reset=False"):
        adapt(SelfResetting()).reset(KEY)


def test_a_state_that_lacks_fields_is_refused_by_their_names():
    class Bare(PlainWalk):
        def reset(self, rng):
            return {"obs": 0.0}

    with pytest.raises(TypeError, match="got dict without obs, reward, done, info, metrics"):
        adapt(Bare()).reset(KEY)


def test_gymnasium_environments_and_other_things_are_refused():
    with pytest.raises(TypeError, match="must be a JAX environment"):
        adapt(gymnasium.make("CartPole-v1"))
    with pytest.raises(TypeError, match="without reset, step"):
        adapt(object())


def test_adapting_twice_changes_nothing():
    once = adapt(PlainWalk())
    assert adapt(once) is once
    assert isinstance(adapt(EnvWrapper(Walk())).reset(KEY), State)


def test_states_are_drawn_by_the_environments_own_states():
    plain = PlainWalk()
    env = adapt(plain)
    frames = env.render(steps(env, [np.ones(1)]), height=4)
    assert frames.shape == (2, 4, 1, 3)
    assert [type(state) for state in plain.drawn] == [PlainState, PlainState]
    assert not hasattr(adapt(Walk()), "render")
