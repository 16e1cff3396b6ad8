"""The pure agents that commands train: made from a config, and acting greedily one observation at a time."""

from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from flax import nnx
from jaxtyping import PyTree

from triax.agents import Agent, PPOAgent, QLearningAgent, SACAgent, TD3Agent
from triax.cli.train_commands import TrainOffPolicy, TrainOnPolicy
from triax.networks import make_mlp_actor_critic
from triax.spaces import batch_decoder, batch_encoder


def make_ppo(command: TrainOnPolicy, env: Any) -> PPOAgent:
    """PPO, A2C or REINFORCE with perceptrons for actor and critic; ``env`` has the spaces of one environment."""

    def network(rngs: nnx.Rngs) -> nnx.Module:
        return make_mlp_actor_critic(
            env.observation_space,
            env.action_space,
            command.hidden,
            command.hidden,
            rngs,
            activation="tanh",
            normalize_obs=command.normalize_obs,
            entropy_weight=command.entropy_weight,
        )

    return PPOAgent(network, command.agent)


def make_q_learning(command: TrainOffPolicy, env: Any) -> QLearningAgent:
    """The Q-learning family."""
    return QLearningAgent(env, command.agent)


def make_sac(command: TrainOffPolicy, env: Any) -> SACAgent:
    """SAC."""
    return SACAgent(env, command.agent)


def make_td3(command: TrainOffPolicy, env: Any) -> TD3Agent:
    """TD3, and DDPG."""
    return TD3Agent(env, command.agent)


class GreedyAgent:
    """A pure agent of no memory that acts in one Gymnasium environment without exploring."""

    def __init__(self, agent: Agent, env: gymnasium.Env) -> None:
        self._agent, self._state = agent, agent.init(jax.random.key(0))
        self._encode = batch_encoder(env.observation_space, who="act_greedily", argument="s")
        self._decode = batch_decoder(env.action_space)

    def weights(self) -> PyTree:
        """The agent's whole state."""
        return self._state

    def set_weights(self, weights: PyTree) -> None:
        """Act with the state of a checkpoint."""
        self._state = weights

    def act_greedily(self, s: Any) -> Any:
        """The action for one observation."""
        batch = self._encode(jax.tree.map(lambda leaf: np.asarray(leaf)[None], s))
        actions = self._decode(jax.device_get(_act(self._agent, self._state, batch)))
        return jax.tree.map(lambda leaf: leaf[0], actions)


@partial(jax.jit, static_argnums=0)
def _act(agent: Agent, state: PyTree, observation: PyTree) -> PyTree:
    key = jax.random.key(0)
    carry = agent.initial_carry(state, 1, key)
    return agent.act(state, observation, carry, key, explore=False)[0]
