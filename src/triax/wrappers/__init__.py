"""Wrappers: of Gymnasium environments, and of JAX environments (EpisodeWrapper, RewardScalingWrapper)."""

from triax.wrappers.box_actions import BoxActionsToDiscrete, BoxActionsToReals
from triax.wrappers.episode_wrapper import EpisodeWrapper
from triax.wrappers.frame_stacking import FrameStacking
from triax.wrappers.meta_policy import MetaPolicyEnv
from triax.wrappers.reward_scaling import RewardScalingWrapper
from triax.wrappers.train_monitor import TrainMonitor

__all__ = [
    "BoxActionsToDiscrete",
    "BoxActionsToReals",
    "EpisodeWrapper",
    "FrameStacking",
    "MetaPolicyEnv",
    "RewardScalingWrapper",
    "TrainMonitor",
]
