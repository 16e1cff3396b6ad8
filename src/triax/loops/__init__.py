"""Loops: how experience is gathered and fed to an agent, on the device or in Gymnasium environments."""

from triax.loops.device_off_policy import DeviceOffPolicy
from triax.loops.device_on_policy import DeviceOnPolicy, OnPolicyConfig
from triax.loops.gymnasium import Hook, HostAgent, Progressed, evaluate, run_gymnasium
from triax.loops.off_policy_core import OffPolicyConfig
from triax.loops.rollouts import rollout
from triax.loops.vector_evaluation import EpisodeResults, evaluate_agent
from triax.loops.vector_off_policy import VectorOffPolicy
from triax.loops.vector_on_policy import VectorOnPolicy

__all__ = [
    "DeviceOffPolicy",
    "DeviceOnPolicy",
    "EpisodeResults",
    "Hook",
    "HostAgent",
    "OffPolicyConfig",
    "OnPolicyConfig",
    "Progressed",
    "VectorOffPolicy",
    "VectorOnPolicy",
    "evaluate",
    "evaluate_agent",
    "rollout",
    "run_gymnasium",
]
