"""Model updaters: transition models and reward functions learned from data."""

from triax.model_updaters.model_updater import ModelUpdater

__all__ = ["ModelUpdater"]
