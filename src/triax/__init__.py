"""Reinforcement learning on JAX."""
