"""Wrappers of Gymnasium environments."""

from triax.wrappers.train_monitor import TrainMonitor

__all__ = ["TrainMonitor"]
