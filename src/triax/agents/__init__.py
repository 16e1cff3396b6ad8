"""Agents: algorithms assembled from approximators and rules."""

from triax.agents.dqn import DQN, DQNConfig

__all__ = ["DQN", "DQNConfig"]
