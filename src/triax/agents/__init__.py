"""Agents: algorithms assembled from functions and rules, as pure functions that every loop calls."""

from triax.agents.distillation import Distillation
from triax.agents.distillation_config import DistillationAgentConfig
from triax.agents.dqn import DQN, DQNConfig
from triax.agents.interface import Agent, Rollout
from triax.agents.logging_level import LoggingLevel
from triax.agents.off_policy import OffPolicyAgent, ReplayNeeds, with_hyperparams
from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.agents.sac import SACAgent, SACConfig
from triax.agents.td3 import TD3Agent, TD3Config

__all__ = [
    "DQN",
    "Agent",
    "DQNConfig",
    "Distillation",
    "DistillationAgentConfig",
    "LoggingLevel",
    "OffPolicyAgent",
    "PPOAgent",
    "PPOAgentConfig",
    "QLearningAgent",
    "QLearningConfig",
    "ReplayNeeds",
    "Rollout",
    "SACAgent",
    "SACConfig",
    "TD3Agent",
    "TD3Config",
    "with_hyperparams",
]
