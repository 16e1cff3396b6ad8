"""What a training measures, and how arrays become numbers in a log."""

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from triax.core.numbers import check_number

Percentiles = tuple[float, ...]
"""Between 0 and 100; ``()`` for none."""


class LoggingLevel(enum.Flag):
    """Families of metrics; combine them with ``|``."""

    NONE = 0
    LOSSES = 1
    CRITIC_EXTRA = 2
    ACTOR_EXTRA = 4
    ROLLOUT_STATS = 8
    ROLLOUT_OBS = 16
    ENV_METRICS = 32
    NETWORK_METRICS = 64
    GRAD_NORM = 128
    WEIGHTS = 256
    THROUGHPUT = 512
    BASIC = LOSSES
    ALL = 1023 & ~ROLLOUT_OBS


def checked_percentiles(who: str, percentiles: Sequence[float] | None) -> Percentiles | None:
    """Percentiles as floats; ``TypeError`` or ``ValueError`` unless each is a number in [0, 100]."""
    if percentiles is None:
        return None
    return tuple(check_number(who, "each of logging_percentiles", level, low=0, high=100) for level in percentiles)


def summarize(
    name: str, tree: Any, percentiles: Percentiles | None = None, *, skip_nan: bool = False
) -> dict[str, Float[Array, ""]]:
    """Numbers for a log of all leaves of a tree, with names joined by ``/``.

    An array gives ``name/mean`` and ``name/std``, and ``name/p2.5`` and so on for ``percentiles``; booleans their
    share, ``name``. Entries of lists and tuples are called by their position. With ``skip_nan`` only numbers count.
    """
    if tree is None:
        return {}
    if isinstance(tree, Mapping):
        parts = tree.items()
    elif isinstance(tree, Sequence):
        parts = enumerate(tree)
    else:
        return _numbers(name, jnp.asarray(tree), percentiles or (), skip_nan)
    summaries = (summarize(f"{name}/{part}", leaf, percentiles, skip_nan=skip_nan) for part, leaf in parts)
    return {key: value for summary in summaries for key, value in summary.items()}


def _numbers(name: str, values: Array, percentiles: Percentiles, skip_nan: bool) -> dict[str, Float[Array, ""]]:
    if values.dtype == jnp.bool_:
        return {name: jnp.mean(values, dtype=jnp.float32)}
    values = values.astype(jnp.float32)
    mean, std, percentile = (
        (jnp.nanmean, jnp.nanstd, jnp.nanpercentile) if skip_nan else (jnp.mean, jnp.std, jnp.percentile)
    )
    numbers = {f"{name}/mean": mean(values), f"{name}/std": std(values)}
    if percentiles:
        levels = percentile(values, jnp.asarray(percentiles, jnp.float32))
        numbers |= {f"{name}/p{p:g}": level for p, level in zip(percentiles, levels, strict=True)}
    return numbers
