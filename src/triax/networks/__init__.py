"""Networks of layers that may remember within an episode."""

from triax.networks.delay import Delay
from triax.networks.feedforward import Dense
from triax.networks.module import StatefulModule, reset_where
from triax.networks.types import (
    ACTIVATION_KEY,
    JaxDataclass,
    ModuleState,
    PPONetworkOutput,
    SizeError,
    StatefulModuleOutput,
)

__all__ = [
    "ACTIVATION_KEY",
    "Delay",
    "Dense",
    "JaxDataclass",
    "ModuleState",
    "PPONetworkOutput",
    "SizeError",
    "StatefulModule",
    "StatefulModuleOutput",
    "reset_where",
]
