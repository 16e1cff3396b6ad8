"""TD3 and DDPG: their formulas, delay, noise, memory."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from compilations import counted_compilations
from continuous_tasks import (
    Aim,
    nth,
    perceptron,
    recurrent_actor,
    recurrent_critic,
    spaces,
    trajectory,
    transitions,
)
from triax.agents.interface import Agent
from triax.agents.off_policy import PRIORITIES, OffPolicyAgent, with_hyperparams
from triax.agents.td3 import TD3Agent, TD3Config
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig

KEY = jax.random.PRNGKey(0)
SMALL = {"hidden": (16,), "batch_size": 8, "gamma": 0.9, "learning_rate": 3e-3, "actor_learning_rate": 2e-3}
ODD = spaces(Box(np.array([-3.0, 10.0], np.float32), np.array([-1.0, 11.0], np.float32)))
CENTRE, HALF = np.array([-2.0, 10.5]), np.array([1.0, 0.5])


@functools.cache
def agent_for_odd_bounds():
    agent = TD3Agent(ODD, TD3Config(**SMALL, tau=0.1))
    state = jax.jit(agent.init)(KEY)
    state = state._replace(targets=jax.tree.map(lambda x: x + 0.05, state.online))
    return agent, state, jax.jit(agent.learn)


@functools.cache
def drifting_agent():
    agent = TD3Agent(ODD, TD3Config.ddpg(**SMALL))
    return agent, jax.jit(agent.init)(KEY), jax.jit(agent.act, static_argnames="explore")


def close(a, b, **tolerance):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **{"rtol": 2e-4, "atol": 2e-6} | tolerance), a, b)


def adam_step(loss, params, rate):
    adam = optax.adam(rate)
    return optax.apply_updates(params, adam.update(jax.grad(loss)(params), adam.init(params))[0])


def values(critics, S, a):
    x = jnp.concatenate([S, a], -1)
    return [perceptron(nth(critics, i), x)[:, 0] for i in range(2)]


# ------------------------------------------------------------------ the textbook


def test_an_update_is_that_of_the_paper_and_every_second_one_moves_actor_and_targets():
    _, state, learn = agent_for_odd_bounds()
    batch, key = transitions(ODD, 8, 1), jax.random.PRNGKey(5)
    new, metrics = learn(state, batch, key)
    rng_noise = jax.random.split(key, 6)[2]
    online, targets = state.online, state.targets
    noise = np.clip(0.2 * np.asarray(jax.random.normal(rng_noise, (8, 2))), -0.5, 0.5)
    a_next = np.clip(np.tanh(perceptron(targets.actor.params, batch.S_next)) + noise, -1, 1)
    G = batch.Rn + batch.In * np.minimum(*values(targets.critics.params, batch.S_next, a_next))
    A = (batch.A - CENTRE) / HALF

    def critic_loss(critics):
        return sum(jnp.mean(batch.W * (q - G) ** 2) / 2 for q in values(critics, batch.S, A))

    def actor_loss(actor):
        first = values(new.online.critics.params, batch.S, jnp.tanh(perceptron(actor, batch.S)))[0]
        return -jnp.mean(batch.W * first)

    np.testing.assert_allclose(metrics["loss"], critic_loss(online.critics.params), rtol=1e-4)
    close(new.online.critics.params, adam_step(critic_loss, online.critics.params, 3e-3))
    jax.tree.map(np.testing.assert_array_equal, (new.online.actor, new.targets), (online.actor, targets))
    assert metrics["actor_loss"] == 0

    # The same batch again, from the same critics as before: the second update is that of the actor, too.
    again = state._replace(updates=jnp.int32(1))
    new, metrics = learn(again, batch, key)
    np.testing.assert_allclose(metrics["actor_loss"], actor_loss(online.actor.params), rtol=1e-4)
    close(new.online.actor.params, adam_step(actor_loss, online.actor.params, 2e-3))
    close(new.targets, jax.tree.map(lambda t, o: 0.9 * t + 0.1 * o, targets, new.online))


def test_the_policy_waits_for_as_many_updates_as_the_config_says():
    agent = TD3Agent(ODD, TD3Config(**SMALL, policy_delay=3))
    states = jax.jit(
        lambda state, batch: jax.lax.scan(lambda s, _: (agent.learn(s, batch, KEY)[0],) * 2, state, length=6)
    )
    start = jax.jit(agent.init)(KEY)
    _, after = states(start, transitions(ODD, 8, 0))
    kernels = [perceptron(start.online.actor.params, jnp.ones((1, 3)))]
    kernels += [perceptron(nth(after.online.actor.params, i), jnp.ones((1, 3))) for i in range(6)]
    moved = [not jnp.array_equal(a, b) for a, b in itertools.pairwise(kernels)]
    assert moved == [False, False, True, False, False, True]


@pytest.mark.parametrize(("noise", "limit"), [(0.2, 0.1), (50.0, 0.5), (50.0, 5.0)])
def test_smoothing_is_clipped_and_stays_within_the_bounds(noise, limit):
    agent, state, _ = agent_for_odd_bounds()
    numbers = with_hyperparams(state, target_noise=noise, noise_clip=limit).hyperparams
    unit = jnp.linspace(-1, 1, 400).reshape(200, 2)
    smoothed = agent._smoothed(unit, numbers, KEY)
    assert jnp.max(jnp.abs(smoothed)) <= 1
    assert jnp.max(jnp.abs(smoothed - unit)) <= limit + 1e-6
    assert jnp.max(jnp.abs(smoothed - unit)) > 0.9 * min(limit, 1)


# ------------------------------------------------------------------ acting


@pytest.mark.parametrize(
    "space",
    [
        Box(-0.1, 0.3, ()),
        Box(np.array([[-1e6, 0.1], [7.0, -3.3]], np.float32), np.array([[1e-3, 0.7], [7.1, -3.2]], np.float32)),
    ],
    ids=str,
)
def test_actions_are_members_of_the_space_also_at_its_edges(space):
    agent = TD3Agent(spaces(space), TD3Config(**SMALL, exploration_noise=3.0))
    state, S = jax.jit(agent.init)(KEY), jax.random.normal(KEY, (64, 3))
    wide = jax.tree.map(lambda x: 30 * x + 1, state.online)
    act = jax.jit(agent.act, static_argnames="explore")
    for state_, explore in ((state, True), (state._replace(updates=jnp.int32(1), online=wide), True), (state, False)):
        action, carry, extras = act(state_, S, (), KEY, explore=explore)
        assert carry == () and extras == ()
        assert all(space.contains(a) for a in np.asarray(action))


def test_noise_is_added_in_units_of_half_the_width():
    agent, state, _ = agent_for_odd_bounds()
    S = jnp.tile(jnp.array([[0.3, -0.2, 0.5]]), (4000, 1))
    state = with_hyperparams(state._replace(updates=jnp.int32(1)), exploration_noise=0.05)
    action = np.asarray(agent.act(state, S, (), KEY)[0])
    greedy = CENTRE + HALF * np.tanh(perceptron(state.online.actor.params, S[:1])[0])
    np.testing.assert_allclose(agent.act(state, S, (), KEY, explore=False)[0][0], greedy, rtol=1e-5)
    np.testing.assert_allclose(action.mean(0), greedy, atol=0.01)
    np.testing.assert_allclose(action.std(0), 0.05 * HALF, rtol=0.1)


def test_drifting_noise_is_the_process_of_ornstein_and_uhlenbeck_and_starts_anew_with_an_episode():
    agent, state, act = drifting_agent()
    state = state._replace(updates=jnp.int32(1))
    S = jnp.zeros((3, 3))
    carry = agent.initial_carry(state, 3, KEY)
    mu = np.asarray(jnp.tanh(perceptron(state.online.actor.params, S)))
    X = np.zeros((3, 2))
    for t in range(5):
        key = jax.random.PRNGKey(t)
        push = 0.2 * np.asarray(jax.random.normal(jax.random.split(key, 4)[1], (3, 2)))
        X = X + 0.15 * (0 - X) + push
        action, carry, _ = act(state, S, carry, key)
        np.testing.assert_allclose(action, CENTRE + HALF * np.clip(mu + X, -1, 1), rtol=1e-5)
        done = np.array([t == 2, False, False])
        carry, X = agent.reset_carry(state, carry, jnp.asarray(done), KEY), np.where(done[:, None], 0, X)
    greedy, after, _ = act(state, S, carry, KEY, explore=False)
    np.testing.assert_allclose(greedy, CENTRE + HALF * mu, rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, after, carry)


def test_ddpg_is_td3_without_what_it_added():
    agent, state, _ = drifting_agent()
    batch, key = transitions(ODD, 8, 1), jax.random.PRNGKey(5)
    state = state._replace(targets=jax.tree.map(lambda x: x + 0.05, state.online))
    new, metrics = jax.jit(agent.learn)(state, batch, key)
    targets = state.targets
    x_next = jnp.concatenate([batch.S_next, jnp.tanh(perceptron(targets.actor.params, batch.S_next))], -1)
    G = batch.Rn + batch.In * perceptron(nth(targets.critics.params, 0), x_next)[:, 0]
    x = jnp.concatenate([batch.S, (batch.A - CENTRE) / HALF], -1)
    q = perceptron(nth(state.online.critics.params, 0), x)[:, 0]
    np.testing.assert_allclose(metrics["loss"], np.mean(batch.W * (q - G) ** 2) / 2, rtol=1e-4)
    close(new.targets, jax.tree.map(lambda t, o: 0.999 * t + 0.001 * o, targets, new.online), rtol=1e-5)
    assert metrics["actor_loss"] != 0
    assert TD3Config.ddpg(tau=0.5) == TD3Config.ddpg().__class__(
        hidden=(400, 300),
        num_critics=1,
        batch_size=64,
        learning_rate=1e-3,
        actor_learning_rate=1e-4,
        tau=0.5,
        policy_delay=1,
        target_noise=0.0,
        noise="ou",
        exploration_noise=0.2,
    )


# ------------------------------------------------------------------ what is kept


def test_an_update_that_is_not_finite_leaves_the_critics_and_is_told():
    _, state, learn = agent_for_odd_bounds()
    batch = transitions(ODD, 8, 0)
    batch.Rn[3] = np.nan
    after, metrics = learn(state, batch, KEY)
    assert metrics["skipped"] == 1
    jax.tree.map(np.testing.assert_array_equal, after.online.critics, state.online.critics)
    jax.tree.map(np.testing.assert_array_equal, after.moments, state.moments)
    broken = transitions(ODD, 8, 0)
    broken.W[0] = np.inf
    after, metrics = learn(state._replace(updates=jnp.int32(1)), broken, KEY)
    assert metrics["skipped"] == 1
    jax.tree.map(np.testing.assert_array_equal, after.online, state.online)


def test_is_an_agent_that_learns_from_replay():
    agent, _, _ = agent_for_odd_bounds()
    assert isinstance(agent, Agent) and isinstance(agent, OffPolicyAgent)
    assert hash(agent) == hash(agent)


@functools.cache
def loop_for(num_seeds=None):
    agent = TD3Agent(Aim(), TD3Config(**SMALL, alpha=0.6))
    return DeviceOffPolicy(Aim(), agent, OffPolicyConfig(capacity=64, warm_up=16), num_seeds=num_seeds)


def test_a_second_run_compiles_nothing():
    loop = loop_for()
    state, metrics = loop.run(loop.init(KEY), 4)
    assert PRIORITIES not in metrics
    with counted_compilations() as count:
        loop.run(state, 4)
    assert count.compilations == 0


def test_seeds_and_numbers_side_by_side_learn_as_they_do_alone():
    keys, taus = jax.random.split(KEY, 2), jnp.array([0.01, 0.5])

    def run(loop, key, taus):
        state = loop.init(key)
        return loop.run(state._replace(agent=with_hyperparams(state.agent, tau=taus)), 4)

    together, metrics = run(loop_for(2), keys, taus)
    for i in range(2):
        alone, own = run(loop_for(), keys[i], taus[i])
        close(alone.agent, nth(together.agent, i), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(own["loss"], metrics["loss"][i], rtol=1e-3)


@pytest.mark.slow
def test_with_memory_the_target_remembers_by_its_own_weights():
    """The loss of a sequence is that of stepping target and online networks along it, each with its own memory."""
    env = spaces(Box(-2.0, 2.0, (2,)))
    config = TD3Config(**SMALL, sequence_length=5, burn_in=2, target_noise=0.0)
    agent = TD3Agent(env, config, actor=recurrent_actor(3, 2), critic=recurrent_critic(5))
    state = jax.jit(agent.init)(KEY)
    state = state._replace(targets=jax.tree.map(lambda x: 1.3 * x + 0.01, state.online))
    memory = jax.tree.map(lambda x: x + 0.2, agent.initial_carry(state, 3, KEY))
    experience = trajectory(env, memory, 5, 3, seed=4, burn_in=2)
    _, metrics = jax.jit(agent.learn)(state, experience, KEY)
    actor, q = agent._nets._actor._lifted.forward, agent._nets.critics._q._lifted.forward

    @jax.jit
    def step(carries, S, A, S_next):
        """Values of both online critics, the smallest target value of what follows, and the memories after it."""
        mu, online, target = carries
        _, mu, _ = actor(*state.targets.actor, KEY, mu, S, False)
        a_next = jnp.tanh(actor(*state.targets.actor, KEY, mu, S_next, False)[0])
        now, after_online, following, after_target = [], [], [], []
        for j in range(2):
            value, carry, _ = q(*nth(state.online.critics, j), KEY, online[j], S, A / 2, False)
            now, after_online = [*now, value], [*after_online, carry]
            _, carry, _ = q(*nth(state.targets.critics, j), KEY, target[j], S, A / 2, False)
            following.append(q(*nth(state.targets.critics, j), KEY, carry, S_next, a_next, False)[0])
            after_target.append(carry)
        return now, jnp.minimum(*following), (mu, after_online, after_target)

    each = [jax.tree.map(lambda x: x[:, j], memory.critics) for j in range(2)]
    carries, total = (memory.actor, each, each), 0.0
    for t in range(5):
        now, following, carries = step(carries, experience.S[t], experience.A[t], experience.S_next[t])
        G = experience.R[t] + 0.9 * np.where(experience.terminated[t], 0, following)
        if t >= 2:
            total += sum(np.sum((value - G) ** 2) / 2 / 9 for value in now)
        done = np.asarray(experience.done[t])[:, None]
        carries = jax.tree.map(lambda x: np.where(done, 0, x), carries)
    np.testing.assert_allclose(metrics["loss"], total, rtol=1e-4)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("space", [Discrete(3), MultiDiscrete([2, 3]), Box(-1, np.inf, (2,))], ids=str)
def test_refuses_other_action_spaces(space):
    with pytest.raises(TypeError, match=r"TD3Agent: needs a Box of floats with finite bounds.*; got"):
        TD3Agent(spaces(space))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.5}, r"gamma must be in \[0, 1\]"),
        ({"tau": 1.1}, "tau must be in"),
        ({"target_noise": -0.1}, "target_noise must be finite and at least 0"),
        ({"exploration_noise": -0.1}, "exploration_noise must be finite and at least 0"),
        ({"actor_learning_rate": 0.0}, "actor_learning_rate must be positive"),
        ({"max_grad_norm": -1.0}, "max_grad_norm must be positive"),
        ({"policy_delay": 0}, "policy_delay must be at least 1"),
        ({"burn_in": 40}, "burn_in must leave steps of sequence_length=40"),
    ],
    ids=str,
)
def test_refuses_numbers_out_of_range(options, message):
    with pytest.raises(ValueError, match=f"TD3Config: {message}"):
        TD3Config(**options)


def test_refuses_unknown_noise():
    config = TD3Config()
    object.__setattr__(config, "noise", "pink")  # annotations refuse it in tests before the check does
    with pytest.raises(ValueError, match="noise must be 'gaussian' or 'ou'; got 'pink'"):
        config.__post_init__()


def test_refuses_an_actor_of_another_shape():
    with pytest.raises(TypeError, match="DeterministicPolicy: func must return an action before its squashing"):
        TD3Agent(ODD, actor=recurrent_actor(3, 5))
