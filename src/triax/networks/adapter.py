"""An actor and a critic as the network that PPO drives."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from triax.networks.container import Container, Run
from triax.networks.types import PPONetworkOutput


class PPOAdapter(Container):
    """Two ports on the same input: ``action`` ends in samplers, ``value`` gives estimates.

    The action port gives one sampler's output or a tree of them (``Map`` of samplers); ``actions`` and
    ``loglikelihoods`` have that tree. ``value_estimates`` must have the tree and the shapes of the reward; a
    last axis of length 1 behind the batch axis is dropped, ``[batch, 1] -> [batch]``. The ports are called
    ``action`` and ``value`` in carry, extras and metrics. Put a shared trunk before the adapter, in a
    :class:`Sequential`. Raises ``TypeError`` where the action port gives something without a sampler.
    """

    def __init__(self, action: Any, value: Any):
        super().__init__(action=action, value=value)

    def wire(self, run: Run, x: Any) -> PPONetworkOutput:
        """Both ports."""
        samples, values = run("action", x), run("value", x)
        _check_samples(samples)
        return PPONetworkOutput(
            actions=_pick(samples, "action"),
            loglikelihoods=_pick(samples, "log_likelihood"),
            value_estimates=jax.tree.map(_drop_feature_axis, values),
        )


def _is_sample(x: Any) -> bool:
    return isinstance(x, Mapping) and {"action", "log_likelihood"} <= set(x)


def _pick(samples: Any, key: str) -> Any:
    return jax.tree.map(lambda sample: sample[key], samples, is_leaf=_is_sample)


def _check_samples(samples: Any) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(samples, is_leaf=_is_sample)
    wrong = [(path, leaf) for path, leaf in leaves if not _is_sample(leaf)]
    if wrong or not leaves:
        where, got = "", "nothing"
        if wrong:
            path, leaf = wrong[0]
            where = f" at {jax.tree_util.keystr(path)}" if path else ""
            got = f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"
        raise TypeError(
            "PPOAdapter: the port 'action' must give a sampler's dict with 'action' and 'log_likelihood', or "
            "a tree "
            f"of such; got {got}{where}. End it with an ActionSampler, such as NormalTanhSampler."
        )


def _drop_feature_axis(value: Any) -> Any:
    return value[..., 0] if jnp.ndim(value) >= 2 and jnp.shape(value)[-1] == 1 else value
