"""Losses of value predictions: ``loss(y_true, y_pred, w=None)`` is a scalar.

With sample weights ``w``, one per entry of axis 0, it is ``mean_i(w_i * L_i)``: divided by the number
of samples, not by the sum of weights. Inputs are floats of one shape, any, or scalars. All raise
``ValueError`` when shapes do not match or ``delta`` is not positive.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


def mse(y_true: ArrayLike, y_pred: ArrayLike, w: ArrayLike | None = None) -> Float[Array, ""]:
    r"""Half the squared error, :math:`\frac12 (\hat y - y)^2`.

    ``y_true``, ``y_pred``: one shape ``[batch, ...]``, or scalars; ``w``: weights ``[batch]``, default 1. Gives
    the mean of ``w`` times the loss, a scalar. Raises ``ValueError`` when shapes differ.
    """
    y_true, y_pred = _as_alike("mse", y_true, y_pred)
    return _weighted_mean("mse", 0.5 * jnp.square(y_pred - y_true), w)


def huber(y_true: ArrayLike, y_pred: ArrayLike, w: ArrayLike | None = None, delta: ArrayLike = 1.0) -> Float[Array, ""]:
    r"""Half the squared error up to ``delta``, then linear with slope ``delta``.

    .. math:: \frac12 \min(e, \delta)^2 + \delta (e - \min(e, \delta)), \quad e = |\hat y - y|

    ``y_true``, ``y_pred``: one shape ``[batch, ...]``, or scalars; ``w``: weights ``[batch]``, default 1. Gives
    the mean of ``w`` times the loss, a scalar. Raises ``ValueError`` when shapes differ, or ``delta`` is not positive.
    Source: Huber 1964, Ann. Math. Statist. 35(1).
    """
    y_true, y_pred = _as_alike("huber", y_true, y_pred)
    return _weighted_mean("huber", _huber("huber", y_pred - y_true, delta), w)


def logloss(y_true: ArrayLike, y_pred: ArrayLike, w: ArrayLike | None = None) -> Float[Array, ""]:
    r"""Binary cross-entropy, :math:`-y \log p - (1 - y) \log(1 - p)`, of probabilities ``y_pred``, in nats.

    ``y_true`` lies in [0, 1]. Probabilities keep the machine epsilon of their dtype from both ends, and have
    no gradient nearer to them: prefer ``logloss_sign`` for the output of a network.

    ``y_true``, ``y_pred``: one shape ``[batch, ...]``, or scalars; ``w``: weights ``[batch]``, default 1. Gives
    the mean of ``w`` times the loss, a scalar. Raises ``ValueError`` when shapes differ.
    """
    y_true, y_pred = _as_alike("logloss", y_true, y_pred)
    epsilon = jnp.finfo(y_pred.dtype).eps
    p = jnp.clip(y_pred, epsilon, 1 - epsilon)
    return _weighted_mean("logloss", -y_true * jnp.log(p) - (1 - y_true) * jnp.log1p(-p), w)


def logloss_sign(y_true_sign: ArrayLike, logits: ArrayLike, w: ArrayLike | None = None) -> Float[Array, ""]:
    r"""Binary cross-entropy of logits, :math:`\log(1 + e^{-y z})` with ``y`` in {-1, 1}, in nats.

    ``y_true_sign``, ``logits``: one shape ``[batch, ...]``, or scalars; ``w``: weights ``[batch]``, default 1. Gives
    the mean of ``w`` times the loss, a scalar. Raises ``ValueError`` when shapes differ.
    """
    y_true_sign, logits = _as_alike("logloss_sign", y_true_sign, logits)
    return _weighted_mean("logloss_sign", jax.nn.softplus(-y_true_sign * logits), w)


def quantile_huber(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    quantiles: ArrayLike,
    w: ArrayLike | None = None,
    delta: ArrayLike = 1.0,
) -> Float[Array, ""]:
    r"""Quantile regression with a Huber loss: ``(B, M)`` targets, ``(B, N)`` predicted quantile values.

    .. math:: \frac1N \sum_{i=1}^N \sum_{j=1}^M
        \left| \tau_i - [d_{ij} < 0] \right| \frac{\mathrm{huber}_\delta(d_{ij})}{\delta},
        \quad d_{ij} = y_j - \hat y_i

    averaged over the batch; ``quantiles`` holds the fractions ``tau``, ``(B, N)``; ``w``: weights ``(B,)``, default 1.
    Raises ``ValueError`` when shapes differ, or ``delta`` is not positive.
    Source: Dabney et al. 2018, arXiv:1710.10044, eq. 10.
    """
    y_true, y_pred, quantiles = (jnp.asarray(x) for x in (y_true, y_pred, quantiles))
    batched = y_true.ndim == y_pred.ndim == 2 and len(y_true) == len(y_pred)
    if not batched or quantiles.shape != y_pred.shape:
        raise ValueError(
            "quantile_huber: y_true, y_pred and quantiles must have shapes (B, M), (B, N) and (B, N); "
            f"got {y_true.shape}, {y_pred.shape} and {quantiles.shape}"
        )
    errors = y_true[:, None, :] - y_pred[:, :, None]
    slopes = jnp.abs(quantiles[:, :, None] - (errors < 0))
    losses = slopes * _huber("quantile_huber", errors, delta) / delta
    return _weighted_mean("quantile_huber", losses.sum(axis=2).mean(axis=1), w)


def _huber(who: str, error: Array, delta: ArrayLike) -> Array:
    if isinstance(delta, int | float) and not delta > 0:  # a traced one cannot be looked at
        raise ValueError(f"{who}: delta must be positive; got {delta}")
    size = jnp.abs(error)
    quadratic = jnp.minimum(size, delta)
    return 0.5 * jnp.square(quadratic) + delta * (size - quadratic)


def _as_alike(who: str, y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    """Both as floats of one shape: a silent ``(B,)`` with ``(B, 1)`` would become ``(B, B)``."""
    true, pred = jnp.asarray(y_true), jnp.asarray(y_pred)
    if true.shape != pred.shape and 0 not in (true.ndim, pred.ndim):
        raise ValueError(
            f"{who}: the first two arguments must have the same shape; got {true.shape} and {pred.shape}. "
            "Did you forget jnp.squeeze(x, axis=-1)?"
        )
    dtype = jnp.result_type(true, pred)
    dtype = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(dtype, jnp.float32)
    return true.astype(dtype), pred.astype(dtype)


def _weighted_mean(who: str, losses: Array, w: Any) -> Float[Array, ""]:
    if w is None:
        return losses.mean()
    weights = jnp.asarray(w)
    if weights.ndim != 1 or losses.ndim == 0 or weights.shape[0] != losses.shape[0]:
        raise ValueError(f"{who}: w must hold one weight per sample, shape {losses.shape[:1]}; got {weights.shape}")
    return jnp.mean(weights.reshape(-1, *[1] * (losses.ndim - 1)) * losses)
