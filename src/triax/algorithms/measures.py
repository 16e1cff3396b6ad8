"""What a training measures besides losses: of its rollouts, its environments, its networks and their weights."""

import warnings
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from triax.agents.interface import Rollout
from triax.agents.logging_level import LoggingLevel, summarize

_FAMILIES = (
    LoggingLevel.ROLLOUT_STATS
    | LoggingLevel.ROLLOUT_OBS
    | LoggingLevel.ENV_METRICS
    | LoggingLevel.NETWORK_METRICS
    | LoggingLevel.WEIGHTS
)


@dataclass(frozen=True)
class RolloutMeasure:
    """The families of a logging level that are of a rollout or of the weights; for ``measure`` of a device loop."""

    level: LoggingLevel
    percentiles: tuple[float, ...] = ()
    network_family: str = "net"
    """What the network's metrics are filed under."""

    @classmethod
    def of(
        cls, level: LoggingLevel, percentiles: tuple[float, ...] | None, network_family: str
    ) -> "RolloutMeasure | None":
        """The measure of a logging level; ``None`` if it has none of these families."""
        level &= _FAMILIES
        return cls(level, percentiles or (), network_family) if level else None

    def __call__(self, agent_state: Any, rollout: Rollout) -> dict[str, Float[Array, ""]]:
        """``rollout_batch/...``, ``env/...``, ``net/...`` and ``weights/...``, as the level says."""
        families = {
            LoggingLevel.ROLLOUT_STATS: lambda: {"rollout_batch": self._stats(rollout)},
            LoggingLevel.ROLLOUT_OBS: lambda: {"rollout_batch": {"obs": rollout.observation}},
            LoggingLevel.ENV_METRICS: lambda: {"env": rollout.metrics},
            LoggingLevel.NETWORK_METRICS: lambda: {self.network_family: rollout.extras.metrics},
            LoggingLevel.WEIGHTS: lambda: {"weights": _all_weights(agent_state.networks.params)},
        }
        found: dict[str, Any] = {}
        for family, trees in families.items():
            if family in self.level:
                for name, tree in trees().items():
                    found |= summarize(name, tree, self.percentiles)
        return found

    def _stats(self, rollout: Rollout) -> PyTree:
        return {
            "reward": rollout.reward,
            "action": rollout.action,
            "done_rate": rollout.terminated | rollout.truncated,
            "truncation_rate": rollout.truncated,
        }


def _all_weights(params: PyTree) -> Float[Array, " weights"] | None:
    """One vector; ``None``, with a warning, if there are none."""
    leaves = jax.tree.leaves(params)
    if not leaves:
        warnings.warn("LoggingLevel.WEIGHTS: the network has no parameters.", UserWarning, stacklevel=2)
        return None
    return jnp.concatenate([leaf.astype(jnp.float32).ravel() for leaf in leaves])
