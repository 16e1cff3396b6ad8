"""Policy objectives: what a policy is trained to maximise."""

from triax.policy_objectives.base import PolicyObjective
from triax.policy_objectives.likelihood import PPOClip, VanillaPG
from triax.policy_objectives.value_gradient import DeterministicPG, SoftPG

__all__ = ["DeterministicPG", "PPOClip", "PolicyObjective", "SoftPG", "VanillaPG"]
