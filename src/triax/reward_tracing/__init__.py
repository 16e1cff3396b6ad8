"""From single steps to transitions: batches, n-step and Monte Carlo tracers, trajectories."""

from triax.core.trees import chunks_pow2
from triax.reward_tracing.monte_carlo import MonteCarlo
from triax.reward_tracing.n_step import NStep
from triax.reward_tracing.random_batch import get_transition_batch
from triax.reward_tracing.tracer import RewardTracer
from triax.reward_tracing.trajectory import Trajectory
from triax.reward_tracing.transition_batch import TransitionBatch

__all__ = [
    "MonteCarlo",
    "NStep",
    "RewardTracer",
    "Trajectory",
    "TransitionBatch",
    "chunks_pow2",
    "get_transition_batch",
]
