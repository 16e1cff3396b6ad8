"""The Q-learning agent: every option learns, a step is that of the rule, memory helps where it must."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium.spaces import Box

import triax
from corridor import Corridor, Recall
from triax.agents.interface import Agent
from triax.agents.off_policy import PRIORITIES, OffPolicyAgent, with_hyperparams
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig
from triax.networks import LSTM, Dense, Sequential
from triax.reward_tracing import TransitionBatch
from triax.td_learning import DoubleQLearning

ENV = Corridor()
SMALL = {"hidden": (16,), "batch_size": 16, "learning_rate": 5e-3, "tau": 0.05, "gamma": 0.8, "epsilon_updates": 300}


def batch_of(size, seed):
    rng = np.random.default_rng(seed)
    S, S_next = (np.eye(5, dtype=np.float32)[rng.integers(5, size=size)] for _ in range(2))
    In = np.where(rng.random(size) < 0.3, 0, 0.8)
    return TransitionBatch(S, rng.integers(2, size=size), np.zeros(size), rng.normal(size=size), In, S_next)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "q", "n_step": 3},
        {"rule": "double", "dueling": True, "alpha": 0.6},
        pytest.param({"rule": "sarsa"}, marks=pytest.mark.slow),
        pytest.param({"rule": "expected_sarsa"}, marks=pytest.mark.slow),
        pytest.param({"rule": "soft", "temperature": 0.02}, marks=pytest.mark.slow),
        pytest.param({"values": "quantiles", "num_atoms": 8}, marks=pytest.mark.slow),
        {"values": "bins", "num_atoms": 21, "value_range": (-1.0, 2.0), "rule": "q"},
        pytest.param({"target_every": 20, "tau": 1.0}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_finds_values_that_fall_with_the_distance_to_the_goal(options):
    agent = QLearningAgent(ENV, QLearningConfig(**(SMALL | options)))
    loop = DeviceOffPolicy(ENV, agent, OffPolicyConfig(num_envs=2, capacity=2000, warm_up=200))
    state, metrics = loop.run(loop.init(jax.random.PRNGKey(0)), 1500)
    assert metrics["skipped"] == 0
    cells = jnp.eye(5)[:4]
    assert list(agent.act(state.agent, cells, (), jax.random.PRNGKey(0), explore=False)[0]) == [1, 1, 1, 1]
    q = agent._q
    values = np.asarray(q.values_of(q.function_type2(*state.agent.online, jax.random.PRNGKey(0), cells, False)[0]))
    tolerance = 0.15 if options.get("rule") in ("sarsa", "expected_sarsa", "soft") else 0.1
    np.testing.assert_allclose(values[:, 1], [0.8**3, 0.8**2, 0.8, 1], atol=tolerance)


def test_a_step_is_that_of_the_rule_on_the_host_and_of_its_target():
    agent = QLearningAgent(ENV, QLearningConfig(**SMALL, max_grad_norm=0.5))
    state = jax.jit(agent.init)(jax.random.PRNGKey(1))
    q = triax.Q(agent._network, ENV, random_seed=0)
    q_targ = q.copy()
    q.params, q_targ.params = state.online.params, state.target.params
    rule = DoubleQLearning(q, q_targ=q_targ, optimizer=optax.chain(optax.clip_by_global_norm(0.5), optax.adam(5e-3)))
    learn = jax.jit(agent.learn)
    for step in range(5):
        batch = batch_of(16, step)
        told = rule.update(batch)
        q_targ.soft_update(q, 0.05)
        state, metrics = learn(state, batch, jax.random.PRNGKey(step))
        np.testing.assert_allclose(metrics["loss"], told["DoubleQLearning/loss"], rtol=1e-4)
    for pure, shell in ((state.online, q), (state.target, q_targ)):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), pure.params, shell.params)


def test_implicit_quantiles_learn_the_spread_of_a_coin_and_act_by_fewer_fractions():
    config = QLearningConfig(
        values="implicit_quantiles", num_atoms=16, acting_atoms=4, hidden=(16,), learning_rate=1e-2, tau=1.0
    )
    agent = QLearningAgent(ENV, config)
    S, A = np.tile(np.eye(5, dtype=np.float32)[:1], (64, 1)), np.arange(64) % 2
    R = np.where(A == 0, 0.2, np.arange(64) // 2 % 2)  # action 1: 0 or 1, each as likely
    batch = TransitionBatch(S, A, np.zeros(64), R, np.zeros(64), S)
    learn = jax.jit(agent.learn)
    state = agent.init(jax.random.PRNGKey(0))
    for step in range(400):
        state, _ = learn(state, batch, jax.random.PRNGKey(step))
    read = lambda key: agent._q.function_type2(*state.online, jax.random.PRNGKey(key), S, False)[0]  # noqa: E731
    out = read(0)
    assert not np.array_equal(out["quantile_fractions"], read(1)["quantile_fractions"])
    fractions, values = (np.asarray(out[name])[:, 1] for name in ("quantile_fractions", "values"))
    # No error exceeds Huber's 1, so at tau lies the expectile e with tau (1 - e) = (1 - tau) e: tau itself.
    assert np.mean(np.abs(values - fractions)) < 0.1
    np.testing.assert_allclose(np.asarray(out["values"])[:, 0].mean(), 0.2, atol=0.1)
    assert agent.act(state, S, (), jax.random.PRNGKey(0), explore=False)[0].tolist() == [1] * 64


def test_is_an_agent_that_learns_from_replay():
    agent = QLearningAgent(ENV)
    assert isinstance(agent, Agent) and isinstance(agent, OffPolicyAgent)
    assert hash(agent) == hash(agent)


def test_exploration_falls_with_the_updates():
    agent = QLearningAgent(ENV, QLearningConfig(epsilon_start=0.8, epsilon_final=0.2, epsilon_updates=100))
    state = agent.init(jax.random.PRNGKey(0))
    S = jnp.tile(jnp.eye(5)[:1], (4000, 1))
    act = jax.jit(agent.act, static_argnames="explore")
    greedy = act(state, S, (), jax.random.PRNGKey(0), explore=False)[0]
    assert len(set(greedy.tolist())) == 1
    for updates, epsilon in ((0, 0.8), (50, 0.5), (1000, 0.2)):
        action, *_ = act(state._replace(updates=jnp.int32(updates)), S, (), jax.random.PRNGKey(updates))
        assert np.mean(action != greedy) == pytest.approx(epsilon / 2, abs=0.03)


@pytest.mark.parametrize("epsilon", [1.0, 0.3])
def test_without_exploration_actions_are_greedy_whatever_epsilon_is(epsilon):
    agent = QLearningAgent(ENV, QLearningConfig(epsilon_start=epsilon, epsilon_final=epsilon))
    state = agent.init(jax.random.PRNGKey(0))
    S = jax.random.uniform(jax.random.PRNGKey(1), (64, 5))
    q = agent._q.function_type2(*state.online, jax.random.PRNGKey(0), S, False)[0]
    greedy = np.argmax(np.asarray(agent._q.values_of(q)), axis=-1)
    assert set(greedy.tolist()) == {0, 1}
    assert agent.act(state, S, (), jax.random.PRNGKey(0), explore=False)[0].tolist() == greedy.tolist()


def test_an_update_that_is_not_finite_is_left_out_and_told():
    agent = QLearningAgent(ENV, QLearningConfig(**SMALL, alpha=0.5))
    state = agent.init(jax.random.PRNGKey(0))
    batch = batch_of(16, 0)
    batch.Rn[3] = np.nan
    after, metrics = agent.learn(state, batch, jax.random.PRNGKey(0))
    assert metrics["skipped"] == 1 and metrics[PRIORITIES].shape == (16,)
    jax.tree.map(np.testing.assert_array_equal, state.online, after.online)


def recurrent(rngs):
    return Sequential([LSTM(2, 16, rngs), Dense(16, 2, rngs)])


@pytest.mark.parametrize("with_memory", [True, False])
@pytest.mark.slow
def test_only_memory_solves_a_task_that_needs_it(with_memory):
    env = Recall()
    config = QLearningConfig(
        hidden=(16,),
        learning_rate=5e-3,
        tau=0.05,
        batch_size=16,
        sequence_length=6,
        burn_in=2,
        epsilon_updates=400,
        alpha=0.6 if with_memory else None,
    )
    agent = QLearningAgent(env, config, recurrent if with_memory else None)
    loop = DeviceOffPolicy(env, agent, OffPolicyConfig(num_envs=4, capacity=2000, warm_up=200))
    state = loop.run(loop.init(jax.random.PRNGKey(0)), 800)[0]
    returned = loop.run(state, 200)[1]["return"]
    assert returned > 0.8 if with_memory else abs(returned) < 0.3


def test_refuses_what_it_cannot_do():
    reals = SimpleNamespace(observation_space=ENV.observation_space, action_space=Box(-1, 1, (1,)))
    with pytest.raises(TypeError, match="QLearningAgent: needs a Discrete action space"):
        QLearningAgent(reals)
    config = QLearningConfig()
    object.__setattr__(config, "rule", "td")  # annotations refuse it in tests before the check does
    with pytest.raises(ValueError, match=r"rule must be one of .*; got 'td'"):
        config.__post_init__()
    with pytest.raises(ValueError, match="gamma must be in"):
        QLearningConfig(gamma=1.1)
    with pytest.raises(ValueError, match="with memory n_step must be 1; got 3"):
        QLearningAgent(Recall(), QLearningConfig(n_step=3), recurrent)


def test_numbers_side_by_side_learn_as_configs_do_alone():
    numbers = {"learning_rate": [1e-3, 1e-2], "tau": [0.05, 0.5], "epsilon_start": [1.0, 0.5]}
    state = jax.jit(QLearningAgent(ENV, QLearningConfig(**SMALL)).init)(jax.random.PRNGKey(0))
    agent, batch = QLearningAgent(ENV, QLearningConfig(**SMALL)), batch_of(16, 0)

    def learn_twice(agent, state):
        for step in range(2):
            state, _ = agent.learn(state, batch, jax.random.PRNGKey(step))
        return state, agent._exploration(state)

    sweep = lambda values: learn_twice(agent, with_hyperparams(state, **values))  # noqa: E731
    together = jax.jit(jax.vmap(sweep))({name: jnp.array(values) for name, values in numbers.items()})
    for i in range(2):
        own = QLearningAgent(ENV, QLearningConfig(**SMALL | {name: values[i] for name, values in numbers.items()}))
        alone = jax.jit(functools.partial(learn_twice, own))(own.init(jax.random.PRNGKey(0)))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b[i], rtol=1e-5, atol=1e-6), alone, together)
