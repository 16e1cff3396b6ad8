"""SAC: its formulas, spaces, memory, options, and that it learns."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from scipy.stats import norm

from compilations import counted_compilations
from continuous_tasks import (
    Aim,
    nth,
    perceptron,
    recurrent_actor,
    recurrent_critic,
    recurrent_gaussian,
    spaces,
    trajectory,
    transitions,
)
from triax.agents.interface import Agent
from triax.agents.off_policy import PRIORITIES, OffPolicyAgent, with_hyperparams
from triax.agents.sac import SACAgent, SACConfig
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig

KEY = jax.random.PRNGKey(0)


RATES = {"learning_rate": 3e-3, "actor_learning_rate": 2e-3, "temperature_learning_rate": 1e-3}
SMALL = {"hidden": (16,), "batch_size": 8, "gamma": 0.9, **RATES}
ODD = spaces(Box(np.array([-3.0, 10.0], np.float32), np.array([-1.0, 11.0], np.float32)))


@functools.cache
def agent_for_odd_bounds():
    agent = SACAgent(ODD, SACConfig(**SMALL, temperature=0.3, tau=0.1))
    return agent, jax.jit(agent.init)(KEY), jax.jit(agent.learn)


# ------------------------------------------------------------------ the textbook


def drawn(actor, S, key):
    """An action in (-1, 1) and its log-density by the change of variables."""
    out = perceptron(actor, S)
    mu, std = out[:, :2], jnp.exp(out[:, 2:] / 2)
    noise = jax.random.normal(key, mu.shape)
    a = jnp.tanh(mu + std * noise)
    log_prob = jax.scipy.stats.norm.logpdf(noise) - jnp.log(std) - jnp.log(1 - a**2)
    return a, log_prob.sum(-1)


def smallest(critics, S, a):
    x = jnp.concatenate([S, a], -1)
    return jnp.minimum(perceptron(nth(critics, 0), x)[:, 0], perceptron(nth(critics, 1), x)[:, 0])


def adam_step(loss, params, rate):
    adam = optax.adam(rate)
    return optax.apply_updates(params, adam.update(jax.grad(loss)(params), adam.init(params))[0])


def close(a, b, **tolerance):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **{"rtol": 2e-4, "atol": 2e-6} | tolerance), a, b)


def test_an_update_is_that_of_the_paper():
    _, state, learn = agent_for_odd_bounds()
    state = state._replace(targets=jax.tree.map(lambda x: x + 0.05, state.critics))
    batch, key = transitions(ODD, 8, 1), jax.random.PRNGKey(5)
    new, metrics = learn(state, batch, key)
    _, _, rng_next, _, _, rng_now = jax.random.split(key, 6)
    alpha, A = 0.3, (batch.A - np.array([-2.0, 10.5])) / np.array([1.0, 0.5])
    actor, critics, targets = state.actor.params, state.critics.params, state.targets.params

    a_next, log_prob = drawn(actor, batch.S_next, rng_next)
    G = batch.Rn + batch.In * (smallest(targets, batch.S_next, a_next) - alpha * log_prob)

    def critic_loss(critics):
        x = jnp.concatenate([batch.S, A], -1)
        return sum(jnp.mean(batch.W * (perceptron(nth(critics, i), x)[:, 0] - G) ** 2) / 2 for i in range(2))

    def actor_loss(actor):
        a, log_prob = drawn(actor, batch.S, rng_now)
        return jnp.mean(batch.W * (alpha * log_prob - smallest(stepped, batch.S, a)))

    stepped = adam_step(critic_loss, critics, 3e-3)
    np.testing.assert_allclose(metrics["loss"], critic_loss(critics), rtol=1e-4)
    np.testing.assert_allclose(metrics["actor_loss"], actor_loss(actor), rtol=1e-4)
    np.testing.assert_allclose(metrics["grads_norm"], optax.tree.norm(jax.grad(critic_loss)(critics)), rtol=1e-4)
    close(new.critics.params, stepped)
    close(new.actor.params, adam_step(actor_loss, actor, 2e-3))
    close(new.targets.params, jax.tree.map(lambda t, o: 0.9 * t + 0.1 * o, targets, stepped))
    entropy = -jnp.mean(batch.W * drawn(actor, batch.S, rng_now)[1])
    np.testing.assert_allclose(metrics["entropy"], entropy, rtol=1e-4)
    close(new.log_temperature, np.log(0.3) - 1e-3 * np.sign(entropy + 2), rtol=1e-4)


def test_a_discrete_update_sums_over_all_actions():
    env = spaces(Discrete(3, start=4))
    agent = SACAgent(env, SACConfig(**SMALL, temperature=0.3))
    state, batch = jax.jit(agent.init)(KEY), transitions(env, 8, 2)
    targets = jax.tree.map(lambda x: x + 0.05, state.critics)
    _, metrics = jax.jit(agent.learn)(state._replace(targets=targets), batch, KEY)

    def each_action(critics, S):
        return np.minimum(*(np.asarray(perceptron(nth(critics.params, i), S)) for i in range(2)))

    loss = 0.0
    for i in range(8):
        p = np.asarray(jax.nn.softmax(perceptron(state.actor.params, batch.S_next[i : i + 1])[0]))
        q = each_action(targets, batch.S_next[i : i + 1])[0]
        G = batch.Rn[i] + batch.In[i] * sum(p[a] * (q[a] - 0.3 * np.log(p[a])) for a in range(3))
        for j in range(2):
            now = perceptron(nth(state.critics.params, j), batch.S[i : i + 1])[0, batch.A[i] - 4]
            loss += batch.W[i] * (now - G) ** 2 / 16
    np.testing.assert_allclose(metrics["loss"], loss, rtol=1e-5)
    assert state.hyperparams["target_entropy"] == pytest.approx(0.98 * np.log(3))


@pytest.mark.parametrize("target", [-40.0, 40.0])
def test_the_temperature_moves_to_where_the_entropy_is_wanted(target):
    _, state, learn = agent_for_odd_bounds()
    state = with_hyperparams(state, target_entropy=target)
    for i in range(3):
        after, metrics = learn(state, transitions(ODD, 8, i), KEY)
        assert (after.log_temperature > state.log_temperature) == (metrics["entropy"] < target)
        state = after


def test_a_temperature_that_is_not_learned_stays():
    _, state, learn = agent_for_odd_bounds()
    after, _ = learn(with_hyperparams(state, temperature_learning_rate=0.0), transitions(ODD, 8, 0), KEY)
    assert after.log_temperature == state.log_temperature


# ------------------------------------------------------------------ spaces

SPACES = [
    Box(-0.1, 0.3, ()),
    Box(np.array([[-1e6, 0.1], [7.0, -3.3]], np.float32), np.array([[1e-3, 0.7], [7.1, -3.2]], np.float32)),
    Box(-1, 2, (3,), np.float16),
    Box(-1 / 3, 1e-7, (2,), np.float64),
    Discrete(3, start=-5),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_actions_are_members_of_the_space_also_at_its_edges(space):
    env = spaces(space)
    agent = SACAgent(env, SACConfig(**SMALL))
    state, S = jax.jit(agent.init)(KEY), jax.random.normal(KEY, (64, 3))
    act = jax.jit(agent.act, static_argnames="explore")
    wide = state._replace(actor=jax.tree.map(lambda x: 30 * x + 1, state.actor), updates=jnp.int32(1))
    for state_, explore in ((state, True), (wide, True), (wide, False)):
        action, carry, extras = act(state_, S, (), KEY, explore=explore)
        assert carry == () and extras == ()
        members = np.asarray(action).astype(space.dtype)
        members = np.clip(members, space.low, space.high) if space.dtype == np.float64 else members  # float32's bounds
        assert all(space.contains(a) for a in members)
    assert len(np.unique(np.asarray(act(state, S, (), KEY, explore=True)[0]))) > 2


def test_greedy_actions_are_the_medians():
    agent, state, _ = agent_for_odd_bounds()
    S = jax.random.normal(KEY, (5, 3))
    greedy = agent.act(state, S, (), KEY, explore=False)[0]
    mu = np.asarray(perceptron(state.actor.params, np.clip(S, -1, 1)))[:, :2]
    np.testing.assert_allclose(greedy, np.array([-2, 10.5]) + np.array([1, 0.5]) * np.tanh(mu), rtol=1e-5)


def test_exploring_actions_are_distributed_as_the_squashed_normal():
    agent, state, _ = agent_for_odd_bounds()
    S = jnp.tile(jnp.array([[0.3, -0.2, 0.5]]), (4000, 1))
    action = np.asarray(agent.act(state._replace(updates=jnp.int32(1)), S, (), KEY)[0])
    out = np.asarray(perceptron(state.actor.params, S[:1]))[0]
    for i, (centre, half) in enumerate([(-2, 1), (10.5, 0.5)]):
        u = np.arctanh(np.clip((action[:, i] - centre) / half, -1 + 1e-6, 1 - 1e-6))
        quantiles = norm(out[i], np.exp(out[2 + i] / 2)).cdf(u)
        np.testing.assert_allclose(np.quantile(quantiles, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.03)


# ------------------------------------------------------------------ what is kept


def test_an_update_that_is_not_finite_leaves_the_critics_and_is_told():
    _, state, learn = agent_for_odd_bounds()
    batch = transitions(ODD, 8, 0)
    batch.Rn[3] = np.nan
    after, metrics = learn(state, batch, KEY)
    assert metrics["skipped"] == 1
    jax.tree.map(np.testing.assert_array_equal, after.critics, state.critics)
    jax.tree.map(np.testing.assert_array_equal, after.moments.critics, state.moments.critics)
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(after))
    assert learn(state, transitions(ODD, 8, 0), KEY)[1]["skipped"] == 0


def test_is_an_agent_that_learns_from_replay():
    agent, _, _ = agent_for_odd_bounds()
    assert isinstance(agent, Agent) and isinstance(agent, OffPolicyAgent)
    assert hash(agent) == hash(agent)


@functools.cache
def loop_for(num_seeds=None):
    agent = SACAgent(Aim(), SACConfig(**SMALL))
    return DeviceOffPolicy(Aim(), agent, OffPolicyConfig(capacity=64, warm_up=16), num_seeds=num_seeds)


def test_a_second_run_compiles_nothing():
    loop = loop_for()
    state, _ = loop.run(loop.init(KEY), 3)
    with counted_compilations() as count:
        loop.run(state, 3)
    assert count.compilations == 0


def test_seeds_and_learning_rates_side_by_side_learn_as_they_do_alone():
    keys = jax.random.split(KEY, 2)
    rates = jnp.array([1e-3, 1e-2])

    def run(loop, key, rates):
        state = loop.init(key)
        agent = with_hyperparams(state.agent, learning_rate=rates, actor_learning_rate=rates)
        return loop.run(state._replace(agent=agent), 4)

    together, metrics = run(loop_for(2), keys, rates)
    assert metrics["loss"].shape == (2,)
    for i in range(2):
        alone, own = run(loop_for(), keys[i], rates[i])
        close(alone.agent, nth(together.agent, i), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(own["loss"], metrics["loss"][i], rtol=1e-3)
    with pytest.raises(ValueError, match=r"expected some of \['actor_learning_rate'.*; got \['gamma'\]"):
        with_hyperparams(together.agent, gamma=0.9)


# ------------------------------------------------------------------ memory

MEMORY = spaces(Box(-2.0, 2.0, (2,)))


@functools.cache
def recurrent_agent():
    config = SACConfig(**SMALL, sequence_length=6, burn_in=2)
    agent = SACAgent(MEMORY, config, actor=recurrent_gaussian(3, 2), critic=recurrent_critic(5))
    state = jax.jit(agent.init)(KEY)
    state = state._replace(targets=jax.tree.map(lambda x: x * 1.1, state.critics))
    carry = agent.initial_carry(state, 4, KEY)
    return agent, state, jax.tree.map(lambda x: x + 0.3, carry)


@jax.jit
def step(weights, carry, S, taken, other):
    """The values of an action and of another by both critics, and the memory after the first."""
    critics = recurrent_agent()[0]._nets.critics

    def value(j, A):
        own = jax.tree.map(lambda x: x[:, j], carry)
        return critics._q._lifted.forward(*nth(weights, j), KEY, own, S, A / 2, False)[0]

    values = [jnp.stack([value(j, A) for j in range(2)]) for A in (taken, other)]
    return values, critics.remember(weights, carry, KEY, S, taken)


def stepped(weights, experience, carry, others):
    """Values of the actions of the trajectory, of others, and the memory before each step, one after another."""
    values, carries, done = [], [], np.asarray(experience.done)
    for t in range(len(done)):
        if t:
            carry = jax.tree.map(lambda x: np.where(done[t - 1].reshape(-1, 1, 1), 0, x), carry)
        carries.append(carry)
        value, carry = step(weights, carry, experience.S[t], experience.A[t], others[t])
        values.append(value)
    taken, instead = (np.concatenate(part[2:], axis=1) for part in zip(*values, strict=True))
    return taken, instead, carries


def test_values_along_a_sequence_are_those_of_stepping_after_the_burn_in():
    agent, state, carry = recurrent_agent()
    experience = trajectory(MEMORY, carry, 6, 4, seed=3, burn_in=2)
    others = jax.random.uniform(KEY, (6, 4, 2), minval=-2, maxval=2)

    @jax.jit
    def along(state, experience):
        roles = {"critics": state.critics, "targets": state.targets}
        batch = agent._nets.rows(experience, KEY, actors={"actor": state.actor}, critics=roles)
        critics, rows = agent._nets.critics, (others[2:] / 2).reshape(-1, 2)
        instead = critics.of_others(batch, state.critics, KEY, role="critics", actions=rows)
        return [critics.of_taken(batch, w, KEY, role=role).output for role, w in roles.items()], instead

    (online, target), instead = along(state, experience)
    expected, expected_instead, _ = stepped(state.critics, experience, carry.critics, others)
    np.testing.assert_allclose(online, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(instead, expected_instead, rtol=1e-4, atol=1e-5)
    expected, _, _ = stepped(state.targets, experience, carry.critics, others)
    np.testing.assert_allclose(target, expected, rtol=1e-4, atol=1e-5)


def test_burn_in_brings_memory_up_to_date_and_gives_no_gradient():
    agent, state, carry = recurrent_agent()
    experience = trajectory(MEMORY, carry, 6, 4, seed=3, burn_in=2)
    _, _, carries = stepped(state.critics, experience, carry.critics, experience.A)

    def memories(critics):
        roles = {"critics": critics, "targets": state.targets}
        return agent._nets.rows(experience, KEY, actors={"actor": state.actor}, critics=roles).extra_info

    along = jax.jit(memories)(state.critics)
    starts = np.asarray(along.resets[0])
    for found, expected in zip(jax.tree.leaves(along.carries["critics"]), jax.tree.leaves(carries[2]), strict=True):
        np.testing.assert_allclose(found[~starts], expected[~starts], rtol=1e-4, atol=1e-5)
    total = lambda critics: sum(jnp.sum(x) for x in jax.tree.leaves(memories(critics).carries))  # noqa: E731
    assert all(jnp.all(g == 0) for g in jax.tree.leaves(jax.jit(jax.grad(total))(state.critics)))


def test_acting_keeps_the_memories_of_actor_and_critics():
    agent, state, carry = recurrent_agent()
    S = jax.random.uniform(KEY, (4, 3))
    action, after, _ = jax.jit(agent.act)(state, S, carry, KEY)
    close(after.critics, step(state.critics, carry.critics, S, action, action)[1])
    done = jnp.array([True, False, False, True])
    reset = agent.reset_carry(state, after, done, KEY)
    for leaf, old in zip(jax.tree.leaves(reset), jax.tree.leaves(after), strict=True):
        assert jnp.all(leaf[done] == 0)
        np.testing.assert_array_equal(leaf[~done], old[~done])


def test_priorities_are_the_mean_sizes_of_the_errors():
    agent = SACAgent(ODD, SACConfig(**SMALL, alpha=0.6, num_critics=1))
    batch = transitions(ODD, 8, 0)
    batch.In[:] = 0
    state = jax.jit(agent.init)(KEY)
    A = (batch.A - np.array([-2.0, 10.5])) / np.array([1.0, 0.5])
    q = perceptron(nth(state.critics.params, 0), jnp.concatenate([batch.S, A], -1))[:, 0]
    _, metrics = jax.jit(agent.learn)(state, batch, KEY)
    np.testing.assert_allclose(metrics[PRIORITIES], np.abs(batch.Rn - q), rtol=1e-4)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "space",
    [
        MultiDiscrete([2, 3]),
        Dict(a=Discrete(2)),
        Box(-1, np.inf, (2,)),
        Box(0, 5, (1,), np.int32),
        Box(np.array([0.0, 1.0], np.float32), np.array([1.0, 1.0], np.float32)),
    ],
    ids=str,
)
def test_refuses_other_action_spaces(space):
    with pytest.raises(TypeError, match=r"SACAgent: needs a .*Box of floats.*; got"):
        SACAgent(spaces(space))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.5}, r"gamma must be in \[0, 1\]"),
        ({"tau": -0.1}, "tau must be in"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"temperature_learning_rate": -1.0}, "temperature_learning_rate must be finite and at least 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"max_grad_norm": 0.0}, "max_grad_norm must be positive"),
        ({"target_entropy": np.inf}, "target_entropy must be finite"),
        ({"num_critics": 0}, "num_critics must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"burn_in": 40}, "burn_in must leave steps of sequence_length=40"),
    ],
    ids=str,
)
def test_refuses_numbers_out_of_range(options, message):
    with pytest.raises(ValueError, match=f"SACConfig: {message}"):
        SACConfig(**options)


def test_refuses_returns_of_several_steps_with_memory():
    with pytest.raises(ValueError, match="SACAgent: with memory n_step must be 1; got 3"):
        SACAgent(MEMORY, SACConfig(n_step=3), actor=recurrent_gaussian(3, 2))


def test_refuses_an_actor_that_gives_something_else():
    with pytest.raises(TypeError, match="Policy: func must return distribution parameters"):
        SACAgent(MEMORY, actor=recurrent_actor(3, 2))
