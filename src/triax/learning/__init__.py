"""What all learning rules share: losses to pure learners, and the shell that trains in place."""

from triax.learning.batches import BatchEncoder, clip_weights
from triax.learning.learner import Gradients, Learner, Loss, LossOutput, Step, make_learner
from triax.learning.updater import Updater

__all__ = [
    "BatchEncoder",
    "Gradients",
    "Learner",
    "Loss",
    "LossOutput",
    "Step",
    "Updater",
    "clip_weights",
    "make_learner",
]
