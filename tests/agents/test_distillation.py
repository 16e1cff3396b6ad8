import functools

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.agents.distillation import Distillation
from triax.agents.distillation_config import DistillationAgentConfig as Config
from triax.agents.interface import Agent, Rollout
from triax.networks import (
    LSTM,
    Dense,
    DistributionSampler,
    Normalizer,
    NormalTanhSampler,
    PPOAdapter,
    Sequential,
    make_mlp,
    make_mlp_actor_critic,
)

TIME, BATCH = 6, 8
DISCRETE = gym.spaces.Discrete(3)


def mlp(seed, size=3, hidden=(8,), space=2, **options):
    return make_mlp_actor_critic(size, space, list(hidden), [4], nnx.Rngs(seed), head_scale=1.0, **options)


def recurrent(seed, size=3, width=6, weight=0.0):
    rngs = nnx.Rngs(seed)
    actor = Sequential([LSTM(size, width, rngs), Dense(width, 4, rngs), NormalTanhSampler(rngs, weight)])
    return Sequential([Normalizer(size), PPOAdapter(actor, make_mlp([size, 4, 1], rngs))])


@functools.partial(jax.jit, static_argnums=0)
def rollout(agent, state, key):
    """Noise for observations, and episodes that end by chance."""
    keys = jax.random.split(key, TIME)
    carry = agent.initial_carry(state, BATCH, key)

    def step(carry, key):
        observation = jax.random.normal(key, (BATCH, 3))
        action, after, extras = agent.act(state, observation, carry, key)
        terminated, truncated = jax.random.bernoulli(key, 0.2, (2, BATCH))
        truncated = truncated & ~terminated
        told = (observation, action, jnp.zeros(BATCH), terminated, truncated, observation, extras)
        return agent.reset_carry(state, after, terminated | truncated, key), (told, after)

    _, (told, after) = jax.lax.scan(step, carry, keys)
    return Rollout(*told, carry, jax.tree.map(lambda leaf: leaf[-1], after), jnp.ones(BATCH, bool))


learn = jax.jit(lambda agent, *args: agent.learn(*args), static_argnums=0)


def distilled(agent, updates, seed=0):
    state = agent.init(jax.random.key(0))
    first = last = None
    for i in range(updates):
        key = jax.random.fold_in(jax.random.key(seed), i)
        state, metrics = learn(agent, state, rollout(agent, state, key), key)
        last = {name: float(np.mean(value)) for name, value in metrics.items()}
        first = first or last
    return state, first, last


@pytest.mark.parametrize("make", [mlp, recurrent])
def test_a_twin_of_the_teacher_is_no_distance_away_whatever_was_reset(make):
    agent = Distillation(make(0), make(0))
    assert isinstance(agent, Agent)
    state = agent.init(jax.random.key(0))
    experience = rollout(agent, state, jax.random.key(1))
    _, metrics = jax.jit(agent.loss)(state.networks, state.teacher, experience, jax.random.key(2))
    np.testing.assert_allclose(metrics["distillation"], 0.0, atol=1e-5)
    # The other way round: with the reset of one episode forgotten, a memory does tell them apart.
    if make is recurrent:
        wrong = experience._replace(terminated=jnp.zeros_like(experience.terminated), truncated=experience.terminated)
        wrong = wrong._replace(truncated=jnp.zeros_like(wrong.truncated))
        assert jax.jit(agent.loss)(state.networks, state.teacher, wrong, jax.random.key(2))[1]["distillation"] > 1e-4


@pytest.mark.parametrize(("teacher", "student"), [(mlp, recurrent), (recurrent, functools.partial(mlp, hidden=(5, 7)))])
@pytest.mark.slow
def test_architectures_may_differ(teacher, student):  # F55
    agent = Distillation(teacher(0), student(1), Config(learning_rate=1e-2))
    _, first, last = distilled(agent, 15)
    assert last["losses/distillation/mean"] < 0.5 * first["losses/distillation/mean"]


def sigma_of(network):
    network.eval()
    x = jax.random.normal(jax.random.key(0), (64, 3))
    actor = network(network.initialize_state(64), x).metrics["ppo_adapter_1"]["action"]
    return float(next(metrics["sigma"] for name, metrics in actor.items() if "sampler" in name).mean())


@pytest.mark.slow
def test_the_student_learns_the_spread_of_the_teacher():  # F10
    found = {}
    for loss in ("kl", "sample", "mode"):
        student = mlp(1, entropy_weight=0.0, min_std=1e-3)
        agent = Distillation(mlp(0), student, Config(learning_rate=3e-2, n_minibatches=1, loss=loss))
        agent.write_into(student, distilled(agent, 60)[0])
        found[loss] = sigma_of(student)
    teacher = sigma_of(mlp(0))
    assert abs(found["kl"] - teacher) < 0.1 * teacher
    assert abs(found["sample"] - teacher) < 0.25 * teacher
    assert found["mode"] < 0.5 * teacher


@pytest.mark.slow
def test_a_scripted_teacher_of_choices_is_learned():
    def script(observation):
        return jnp.where(observation[..., 0] > 0, 2, 0)

    agent = Distillation(script, mlp(1, hidden=(16,), space=DISCRETE), Config(learning_rate=2e-2))
    state, _, _ = distilled(agent, 40)
    x = jax.random.normal(jax.random.key(7), (200, 3))
    action, _, extras = agent.act(
        state, x, agent.initial_carry(state, 200, jax.random.key(0)), jax.random.key(0), False
    )
    assert extras == ()
    assert np.mean(np.asarray(action) == np.asarray(script(x))) > 0.95


def test_other_families_are_matched_by_samples():
    box = gym.spaces.Box(-1.0, 1.0, (2,))
    rngs = nnx.Rngs(1)
    actor = Sequential([Dense(3, 4, rngs), DistributionSampler(box, rngs)])
    student = PPOAdapter(actor, Dense(3, 1, rngs))
    agent = Distillation(mlp(0), student, Config(learning_rate=1e-2, loss="sample"))
    _, first, last = distilled(agent, 15)
    assert last["losses/distillation_nll/mean"] < first["losses/distillation_nll/mean"]
    with pytest.raises(TypeError, match=r"one family; got NormalTanhSampler.* in the teacher and DistributionSampler"):
        distilled(Distillation(mlp(0), student, Config(learning_rate=1e-2)), 1)


def test_the_teacher_and_its_statistics_never_change_and_the_students_see_each_sample_once():
    agent = Distillation(recurrent(0), recurrent(1), Config(learning_rate=1e-2))
    start = agent.init(jax.random.key(0))
    state, _, _ = distilled(agent, 3)
    for a, b in zip(jax.tree.leaves(state.teacher), jax.tree.leaves(start.teacher), strict=True):
        np.testing.assert_array_equal(a, b)
    student = recurrent(1)
    agent.write_into(student, state)
    assert student[0].counter == 3 * TIME * BATCH


def test_an_update_that_is_not_finite_is_left_out():
    agent = Distillation(mlp(0), mlp(1), Config(learning_rate=1e-2))
    state = agent.init(jax.random.key(0))
    experience = rollout(agent, state, jax.random.key(1))
    poisoned = experience._replace(observation=jnp.full_like(experience.observation, jnp.nan))
    after, metrics = learn(agent, state, poisoned, jax.random.key(2))
    assert metrics["skipped"] == 1.0
    for a, b in zip(jax.tree.leaves(after.networks.params), jax.tree.leaves(state.networks.params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_agents_of_one_structure_and_config_are_equal_whatever_their_weights():
    one, twin = (Distillation(recurrent(seed), mlp(seed + 1), Config(n_epochs=2)) for seed in (0, 5))
    assert one == twin and hash(one) == hash(twin)
    assert one != Distillation(recurrent(0), mlp(1), Config(n_epochs=3))
    assert one != Distillation(mlp(0), mlp(1), Config(n_epochs=2))
    assert one != Distillation(recurrent(0), recurrent(1), Config(n_epochs=2))


def test_steps_that_weigh_nothing_teach_nothing():
    agent = Distillation(mlp(0), mlp(1))
    state = agent.init(jax.random.key(0))
    experience = rollout(agent, state, jax.random.key(1))
    weight = jnp.ones((TIME, BATCH)).at[2:4].set(0.0)
    noise = experience.observation.at[2:4].set(100.0)
    loss = jax.jit(lambda r: agent.loss(state.networks, state.teacher, r, jax.random.key(2))[0])
    weighted = experience._replace(weight=weight)
    found = [loss(r) for r in (weighted, weighted._replace(observation=noise), experience)]
    assert found[0] == found[1] != found[2]


def test_misuse_is_told():
    with pytest.raises(TypeError, match="must end in an action sampler; got Dense"):
        Distillation(mlp(0), Dense(3, 2, nnx.Rngs(0)), Config(learning_rate=1e-2))
    with pytest.raises(ValueError, match="'kl', 'sample' or 'mode'; got 'nll'"):
        Distillation(mlp(0), mlp(1), Config(loss="nll"))
    agent = Distillation(mlp(0), mlp(1), Config(n_minibatches=3))
    state = agent.init(jax.random.key(0))
    with pytest.raises(ValueError, match="multiple of n_minibatches; got 8 and 3"):
        learn(agent, state, rollout(agent, state, jax.random.key(1)), jax.random.key(2))
    agent = Distillation(lambda x: {"arm": x}, mlp(1), Config(learning_rate=1e-2))
    state = agent.init(jax.random.key(0))
    with pytest.raises(ValueError, match="the same tree of actions"):
        learn(agent, state, rollout(agent, state, jax.random.key(1)), jax.random.key(2))
