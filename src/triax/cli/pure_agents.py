"""The pure agents that commands train: made from a config, and acting greedily one observation at a time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PyTree

from triax.agents import Agent, PPOAgent, QLearningAgent, SACAgent, TD3Agent
from triax.agents.default_networks import flatten, num_features
from triax.cli.train_commands import TrainOffPolicy, TrainOnPolicy
from triax.networks import Sequential, make_mlp_actor_critic
from triax.spaces import batch_decoder, batch_encoder, default_preprocessor


def make_ppo(command: TrainOnPolicy, env: Any) -> PPOAgent:
    """PPO, A2C or REINFORCE with perceptrons for actor and critic; ``env`` has the spaces of one environment."""
    observed = env.observation_space

    def network(rngs: nnx.Rngs) -> nnx.Module:
        actor_critic = make_mlp_actor_critic(
            observed if _has_mean(observed) else num_features(observed),
            env.action_space,
            command.hidden,
            command.hidden,
            rngs,
            activation="tanh",
            normalize_obs=command.normalize_obs,
            entropy_weight=command.entropy_weight,
        )
        return actor_critic if _has_mean(observed) else Sequential([_features_of(observed), actor_critic])

    return PPOAgent(network, command.agent)


def _has_mean(space: gymnasium.Space) -> bool:
    """Whether it is of boxes only, which a normalizer takes as they are."""
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, gymnasium.spaces.Dict) else space.spaces
        return all(map(_has_mean, parts))
    return isinstance(space, gymnasium.spaces.Box)


def _features_of(space: gymnasium.Space) -> Callable[[PyTree], Float[Array, "batch features"]]:
    """One-hots of what is discrete, and all else, side by side."""
    prepare = default_preprocessor(space)
    return lambda observation: flatten(prepare(None, observation))


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
