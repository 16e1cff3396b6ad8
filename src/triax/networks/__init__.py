"""Networks of layers that may remember within an episode."""

from triax.networks.adapter import PPOAdapter
from triax.networks.attention import SlidingWindowAttention
from triax.networks.container import Container, Run
from triax.networks.containers import Concat, Map, Merge, Parallel, Sequential
from triax.networks.convolution import conv_general_dilated
from triax.networks.delay import Delay
from triax.networks.distribution_sampler import DistributionSampler
from triax.networks.factories import make_mlp, make_mlp_actor_critic, make_mlp_layers
from triax.networks.feedforward import Conv, Dense, LearnedConstant
from triax.networks.frame_stack import FrameStack
from triax.networks.graph import Connection, Population, PopulationGraph
from triax.networks.haiku_layer import HaikuLayer
from triax.networks.linear_recurrence import LRU, MinGRU, linear_recurrence
from triax.networks.module import StatefulModule, reset_where
from triax.networks.normalizer import Normalizer, NormalizerStatistics
from triax.networks.plain import Stateless, Stochastic, as_module
from triax.networks.randomness import reseed
from triax.networks.recording import Recorder, extract_activations, with_recording
from triax.networks.recurrent import GRU, LSTM, LSTMCarry
from triax.networks.reshaping import Filter, FilterSpec, Flattener, Scale, Splitter
from triax.networks.samplers import ActionSampler, DrawingSampler, NormalTanhSampler
from triax.networks.types import (
    ACTIVATION_KEY,
    JaxDataclass,
    ModuleState,
    PPONetworkOutput,
    SizeError,
    StatefulModuleOutput,
)
from triax.networks.variational import AR1State, AR1VariationalBottleneck, VariationalBottleneck

__all__ = [
    "ACTIVATION_KEY",
    "GRU",
    "LRU",
    "LSTM",
    "AR1State",
    "AR1VariationalBottleneck",
    "ActionSampler",
    "Concat",
    "Connection",
    "Container",
    "Conv",
    "Delay",
    "Dense",
    "DistributionSampler",
    "DrawingSampler",
    "Filter",
    "FilterSpec",
    "Flattener",
    "FrameStack",
    "HaikuLayer",
    "JaxDataclass",
    "LSTMCarry",
    "LearnedConstant",
    "Map",
    "Merge",
    "MinGRU",
    "ModuleState",
    "NormalTanhSampler",
    "Normalizer",
    "NormalizerStatistics",
    "PPOAdapter",
    "PPONetworkOutput",
    "Parallel",
    "Population",
    "PopulationGraph",
    "Recorder",
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
    "conv_general_dilated",
    "extract_activations",
    "linear_recurrence",
    "make_mlp",
    "make_mlp_actor_critic",
    "make_mlp_layers",
    "reseed",
    "reset_where",
    "with_recording",
]
