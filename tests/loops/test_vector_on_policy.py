"""The on-policy loop on Gymnasium: equal to the device loop, in every autoreset mode, in one call a step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from compilations import counted_compilations, python_files_of_jax_run_by
from corridor import Corridor
from jax_vector_env import JaxVectorEnv
from scheduled_episodes import Scheduled, by_hand, schedules
from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.core.trees import copy_arrays
from triax.loops.device_on_policy import DeviceOnPolicy, OnPolicyConfig
from triax.loops.vector_on_policy import VectorOnPolicy
from triax.networks import LSTM, Dense, DistributionSampler, Normalizer, PPOAdapter, Sequential


def recurrent(rngs):
    """With statistics."""
    actor = Sequential([Dense(4, 2, rngs), DistributionSampler(Corridor().action_space, rngs)])
    return Sequential([Normalizer(5), LSTM(5, 4, rngs), PPOAdapter(actor, Dense(4, 1, rngs))])


def test_gives_the_parameters_of_the_device_loop():
    env, key = Corridor(), jax.random.PRNGKey(3)
    agent = PPOAgent(recurrent, PPOAgentConfig(learning_rate=1e-2, n_epochs=2, n_minibatches=2))
    config = OnPolicyConfig(num_envs=4, rollout_length=7)
    on_device = DeviceOnPolicy(env, agent, config, most=4)
    expected, told = on_device.run(on_device.init(key), 4)
    loop = VectorOnPolicy(JaxVectorEnv(env, 4, key), agent, config)
    loop.init(key)
    metrics = []
    assert loop.run(4 * 4 * 7, hooks=[lambda p: metrics.append(p.metrics)]) == 112
    found, wanted = loop.state.learner, expected
    assert found.iteration == wanted.iteration == 4
    for part in ("agent", "key"):
        for a, b in zip(jax.tree.leaves(getattr(found, part)), jax.tree.leaves(getattr(wanted, part)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    for name in ("carry", "starts", "episodes"):
        a, b = (jax.tree.leaves(getattr(state.acting, name)) for state in (found, wanted))
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), a, b)
    learned = [m for m in metrics if m is not None]
    assert len(learned) == 4 and len(metrics) == 28
    for name, rows in told.items():
        np.testing.assert_allclose([m[name] for m in learned], rows, rtol=1e-3, atol=1e-5)


# ------------------------------------------------------------------ every autoreset mode


class Listener:
    """An agent that learns nothing and keeps the last rollout; its memory counts steps."""

    def init(self, key):
        return {}

    def initial_carry(self, state, batch_size, key):
        return jnp.zeros(batch_size, jnp.int32)

    def reset_carry(self, state, carry, done, key):
        return jnp.where(done, 0, carry)

    def act(self, state, observation, carry, key, explore=True):
        action = jax.random.bernoulli(key, shape=carry.shape).astype(jnp.int32)
        return action, carry + 1, {"remembered": carry, "action": action}

    def learn(self, state, experience, key):
        return state, {"rollout": experience}


LISTENER, FIRST, LENGTH = Listener(), (0, 500), 5


def listening(many, mode, first=FIRST):
    env = SyncVectorEnv(
        [lambda s=s, k=k: Scheduled(s, k) for s, k in zip(many, first, strict=True)], autoreset_mode=mode
    )
    return VectorOnPolicy(env, LISTENER, OnPolicyConfig(num_envs=2, rollout_length=LENGTH))


def rollouts(loop, total):
    """What the agent learned from, end to end."""
    told = []
    loop.run(total, hooks=[lambda p: told.append(p.metrics["rollout"]) if p.metrics else None])
    return jax.device_get(told)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@given(st.lists(schedules, min_size=2, max_size=2), st.integers(1, 30))
@settings(max_examples=12, deadline=None)
def test_rollouts_are_the_episodes_of_each_environment_whichever_way_they_begin(mode, many, total):
    """Pitfalls 1, 4, 8, 30."""
    loop = listening(many, mode)
    loop.init(jax.random.PRNGKey(0))
    told = rollouts(loop, total)
    resets = np.concatenate([np.concatenate([r.starts[None], (r.terminated | r.truncated)[:-1]]) for r in told])
    assert all(r.carry.tolist() == r.extras["remembered"][0].tolist() for r in told if not r.starts.any())
    whole = jax.tree.map(
        lambda *leaves: np.concatenate(leaves), *[r._replace(carry=(), last_carry=(), starts=()) for r in told]
    )
    np.testing.assert_array_equal(whole.action, whole.extras["action"])
    taken = 0
    for k, (schedule, first) in enumerate(zip(many, FIRST, strict=True)):
        rows = by_hand(schedule, first, len(resets), mode)
        counts = np.ones(len(resets), bool) if whole.weight is None else whole.weight[:, k] > 0
        at, following = whole.observation["at"][0][:, k], whole.next_observation["at"][0][:, k]
        columns = (*at.T, following[:, 1], whole.reward[:, k], whole.terminated[:, k], whole.truncated[:, k])
        assert [tuple(row) for row in np.stack(columns, axis=1)[counts].tolist()] == [
            tuple(map(float, r)) for r in rows
        ]
        np.testing.assert_array_equal(following[counts, 0], at[counts, 0])
        np.testing.assert_array_equal(whole.extras["remembered"][counts, k], at[counts, 1])
        np.testing.assert_array_equal(resets[counts, k], at[counts, 1] == 0)
        assert not whole.reward[~counts, k].any() and whole.truncated[~counts, k].all()
        taken += len(rows)
    assert loop.state.taken == taken >= total


@pytest.mark.slow
def test_a_resumed_run_begins_new_episodes_with_a_fresh_memory():
    endless = [[(1000, "truncated")]] * 2
    loop = listening(endless, AutoresetMode.SAME_STEP)
    loop.init(jax.random.PRNGKey(0))
    loop.run(20)
    kept = copy_arrays(loop.state)
    later = listening(endless, AutoresetMode.SAME_STEP, first=(100, 600))
    later.restore(kept)
    (told,) = rollouts(later, 30)
    assert told.starts.all() and not told.extras["remembered"][0].any()
    np.testing.assert_array_equal(told.observation["at"][0][0], [[100, 0], [600, 0]])
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(kept.learner))
    assert later.state.learner.iteration == 3


def test_a_rollout_that_is_under_way_is_gone_on_with():
    loop = listening([[(7, "both")], [(3, "truncated")]], AutoresetMode.NEXT_STEP)
    loop.init(jax.random.PRNGKey(0))
    stopped = loop.run(100, hooks=[lambda p: p.step >= 4])
    assert stopped == 4 and loop.state.taken == 0
    (told,) = rollouts(loop, 1)
    assert told.observation["at"][1][:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_step_makes_one_compiled_call_and_compiles_nothing_the_second_time():
    many = [[(3, "both")], [(2, "truncated")]]
    loop = listening(many, AutoresetMode.SAME_STEP)
    with counted_compilations() as count:
        loop.init(jax.random.PRNGKey(0))
        loop.run(20)
        before = count.compilations
        again = listening(many, AutoresetMode.SAME_STEP)
        again.init(jax.random.PRNGKey(1))
        again.run(40)
        assert count.compilations == before
    called = []

    def counted(name):
        program = getattr(loop._compiled, name)
        return lambda *args: called.append(name) or program(*args)

    loop._compiled = loop._compiled._replace(**{name: counted(name) for name in loop._compiled._fields})
    loop.run(40)
    assert called == (["act"] * LENGTH + ["learn"]) * 2
    assert not python_files_of_jax_run_by(loop._step) & {"pjit.py", "core.py", "lax.py", "random.py", "lax_numpy.py"}


def test_what_does_not_fit_is_refused():
    env = SyncVectorEnv([lambda: Scheduled([(1, "both")])] * 2)
    with pytest.raises(ValueError, match=r"num_envs must be that of env, 2; got 256"):
        VectorOnPolicy(env, LISTENER, OnPolicyConfig())
    with pytest.raises(RuntimeError, match=r"Call init\(key\) or restore"):
        VectorOnPolicy(env, LISTENER).run(1)
