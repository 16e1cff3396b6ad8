"""Networks of layers that may remember within an episode."""

from triax.networks.container import Container, Run
from triax.networks.containers import Concat, Map, Merge, Parallel, Sequential
from triax.networks.delay import Delay
from triax.networks.feedforward import Dense
from triax.networks.module import StatefulModule, reset_where
from triax.networks.plain import Stateless, Stochastic, as_module
from triax.networks.randomness import reseed
from triax.networks.recurrent import GRU, LSTM, LSTMCarry
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
    "GRU",
    "LSTM",
    "Concat",
    "Container",
    "Delay",
    "Dense",
    "JaxDataclass",
    "LSTMCarry",
    "Map",
    "Merge",
    "ModuleState",
    "PPONetworkOutput",
    "Parallel",
    "Run",
    "Sequential",
    "SizeError",
    "StatefulModule",
    "StatefulModuleOutput",
    "Stateless",
    "Stochastic",
    "as_module",
    "reseed",
    "reset_where",
]
