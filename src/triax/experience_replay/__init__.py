"""Replay buffers on the host: preallocated NumPy rings, sampled uniformly or by priority."""

from triax.experience_replay.batch import ReplayableBatch
from triax.experience_replay.buffer import EmptyBufferError, ReplayBuffer
from triax.experience_replay.prioritized import PrioritizedReplayBuffer
from triax.experience_replay.sequence import SequenceReplayBuffer
from triax.experience_replay.simple import SimpleReplayBuffer

__all__ = [
    "EmptyBufferError",
    "PrioritizedReplayBuffer",
    "ReplayBuffer",
    "ReplayableBatch",
    "SequenceReplayBuffer",
    "SimpleReplayBuffer",
]
