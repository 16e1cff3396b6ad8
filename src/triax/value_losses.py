"""Losses of value predictions under the name users know; they live in ``triax.losses.value_losses``."""

from triax.losses.value_losses import huber, logloss, logloss_sign, mse, quantile_huber

__all__ = ["huber", "logloss", "logloss_sign", "mse", "quantile_huber"]
