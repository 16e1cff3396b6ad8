"""Networks of layers that may remember within an episode."""

from triax.networks.attention import SlidingWindowAttention
from triax.networks.container import Container, Run
from triax.networks.containers import Concat, Map, Merge, Parallel, Sequential
from triax.networks.delay import Delay
from triax.networks.feedforward import Conv, Dense
from triax.networks.frame_stack import FrameStack
from triax.networks.haiku_layer import HaikuLayer
from triax.networks.linear_recurrence import LRU, MinGRU, linear_recurrence
from triax.networks.module import StatefulModule, reset_where
from triax.networks.normalizer import Normalizer, NormalizerStatistics
from triax.networks.plain import Stateless, Stochastic, as_module
from triax.networks.randomness import reseed
from triax.networks.recurrent import GRU, LSTM, LSTMCarry
from triax.networks.reshaping import Filter, FilterSpec, Flattener, Scale, Splitter
from triax.networks.types import (
    ACTIVATION_KEY,
    JaxDataclass,
    ModuleState,
    PPONetworkOutput,
    SizeError,
    StatefulModuleOutput,
)
from triax.networks.variational import AR1VariationalBottleneck, VariationalBottleneck

__all__ = [
    "ACTIVATION_KEY",
    "GRU",
    "LRU",
    "LSTM",
    "AR1VariationalBottleneck",
    "Concat",
    "Container",
    "Conv",
    "Delay",
    "Dense",
    "Filter",
    "FilterSpec",
    "Flattener",
    "FrameStack",
    "HaikuLayer",
    "JaxDataclass",
    "LSTMCarry",
    "Map",
    "Merge",
    "MinGRU",
    "ModuleState",
    "Normalizer",
    "NormalizerStatistics",
    "PPONetworkOutput",
    "Parallel",
    "Run",
    "Scale",
    "Sequential",
    "SizeError",
    "SlidingWindowAttention",
    "Splitter",
    "StatefulModule",
    "StatefulModuleOutput",
    "Stateless",
    "Stochastic",
    "VariationalBottleneck",
    "as_module",
    "linear_recurrence",
    "reseed",
    "reset_where",
]
