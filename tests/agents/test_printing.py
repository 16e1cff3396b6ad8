import gymnasium
import jax
import pytest
from flax import nnx

from triax.agents import (
    DQN,
    Distillation,
    DQNConfig,
    PPOAgent,
    PPOAgentConfig,
    QLearningAgent,
    QLearningConfig,
    SACAgent,
    TD3Agent,
)
from triax.networks import LSTM, Dense, Sequential, make_mlp_actor_critic

CARTPOLE, PENDULUM = gymnasium.make("CartPole-v1"), gymnasium.make("Pendulum-v1")


def count(params):
    return f"{sum(leaf.size for leaf in jax.tree.leaves(params)):,} parameters"


def small(seed):
    return make_mlp_actor_critic(4, 2, [8], [8], nnx.Rngs(seed))


def test_a_q_learning_agent_tells_its_networks_and_what_is_not_default():
    agent = QLearningAgent(CARTPOLE, QLearningConfig(rule="q", hidden=(8,)))
    head, online, target, config = repr(agent).splitlines()
    params = agent.init(jax.random.key(0)).online.params
    assert head == "QLearningAgent(no memory)"
    assert online.startswith(f"  online: {count(params)}: ")
    for leaf in jax.tree.leaves(params):
        assert str(leaf.shape) in online
    assert target == f"  target: {count(params)}: like online"
    assert config == "  config: QLearningConfig(rule='q', hidden=(8,))"


def test_memory_is_told():
    network = lambda rngs: Sequential([LSTM(4, 6, rngs), Dense(6, 2, rngs)])  # noqa: E731
    agent = QLearningAgent(CARTPOLE, QLearningConfig(), network)
    assert str(agent).startswith("QLearningAgent(with memory)\n  online: 278 parameters: dense_1.linear.bias (2,)")


@pytest.mark.parametrize(
    ("cls", "names"), [(SACAgent, ["actor", "critics"]), (TD3Agent, ["online.actor", "online.critics"])]
)
def test_actors_and_critics_are_told_apart(cls, names):
    agent = cls(PENDULUM)
    state = agent.init(jax.random.key(0))
    online = state if cls is SACAgent else state.online
    lines = repr(agent).splitlines()
    for name, weights in zip(names, (online.actor, online.critics), strict=True):
        assert any(line.startswith(f"  {name}: {count(weights.params)}: ") for line in lines)
    assert lines[-1] == f"  config: {cls.__name__.removesuffix('Agent')}Config()"


def test_agents_of_given_networks_tell_those():
    total = count(nnx.state(small(0), nnx.Param))
    agent = PPOAgent(small(0), PPOAgentConfig(learning_rate=0.5))
    assert f"networks: {total}: " in repr(agent) and "PPOAgentConfig(learning_rate=0.5)" in repr(agent)
    assert f"teacher: {total}: like networks" in repr(Distillation(small(0), small(1)))


def test_dqn_tells_its_parts():
    text = repr(DQN(CARTPOLE, DQNConfig(hidden=(8,), buffer_size=2_000)))
    assert text.startswith("DQN(step=0)\n  q: Q(type 2, 58 parameters)")
    assert "rule: DoubleQLearning(" in text and "buffer: SimpleReplayBuffer(0 of 2,000, empty)" in text
