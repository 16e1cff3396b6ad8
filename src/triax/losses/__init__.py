"""Value losses, value transforms and returns: pure functions of arrays."""

from triax.losses.off_policy_returns import VTraceReturns, retrace, vtrace
from triax.losses.returns import discounted_returns, gae, lambda_returns, n_step_returns, td_errors
from triax.losses.surrogates import ppo_clip
from triax.losses.value_losses import huber, logloss, logloss_sign, mse, quantile_huber
from triax.losses.value_transforms import (
    LogTransform,
    SignedHyperbolicTransform,
    ValueTransform,
    value_transform_of,
)

__all__ = [
    "LogTransform",
    "SignedHyperbolicTransform",
    "VTraceReturns",
    "ValueTransform",
    "discounted_returns",
    "gae",
    "huber",
    "lambda_returns",
    "logloss",
    "logloss_sign",
    "mse",
    "n_step_returns",
    "ppo_clip",
    "quantile_huber",
    "retrace",
    "td_errors",
    "value_transform_of",
    "vtrace",
]
