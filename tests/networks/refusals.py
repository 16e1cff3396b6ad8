"""What layers refuse to be made of, run without the tests' type checker: prints each error as JSON, by its case."""

import json
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from gymnasium.spaces import Discrete

from triax.networks import (
    GRU,
    LRU,
    LSTM,
    AR1VariationalBottleneck,
    Concat,
    Conv,
    Delay,
    Dense,
    DistributionSampler,
    Flattener,
    FrameStack,
    Map,
    Merge,
    MinGRU,
    Normalizer,
    NormalTanhSampler,
    Parallel,
    PopulationGraph,
    Scale,
    Sequential,
    SlidingWindowAttention,
    Splitter,
    VariationalBottleneck,
    make_mlp,
    make_mlp_actor_critic,
    make_mlp_layers,
)

R = nnx.Rngs(0)
NAN = math.nan
SIZED = {
    "Dense.in_features": lambda size: Dense(size, 2, R),
    "Dense.out_features": lambda size: Dense(2, size, R),
    "Conv.in_features": lambda size: Conv(size, 2, 1, R),
    "Conv.out_features": lambda size: Conv(2, size, 1, R),
    "Conv.kernel_size": lambda size: Conv(2, 2, (1, size), R),
    "LSTM.in_features": lambda size: LSTM(size, 2, R),
    "LSTM.hidden_features": lambda size: LSTM(2, size, R),
    "GRU.in_features": lambda size: GRU(size, 2, R),
    "GRU.hidden_features": lambda size: GRU(2, size, R),
    "LRU.in_features": lambda size: LRU(size, 2, R),
    "LRU.hidden_features": lambda size: LRU(2, size, R),
    "LRU.out_features": lambda size: LRU(2, 2, R, out_features=size),
    "MinGRU.in_features": lambda size: MinGRU(size, 2, R),
    "MinGRU.hidden_features": lambda size: MinGRU(2, size, R),
    "SlidingWindowAttention.in_features": lambda size: SlidingWindowAttention(size, R, window=1),
    "SlidingWindowAttention.window": lambda size: SlidingWindowAttention(2, R, window=size, num_heads=1),
    "SlidingWindowAttention.num_heads": lambda size: SlidingWindowAttention(4, R, window=1, num_heads=size),
    "SlidingWindowAttention.qkv_features": lambda size: SlidingWindowAttention(4, R, window=1, qkv_features=size),
    "SlidingWindowAttention.out_features": lambda size: SlidingWindowAttention(4, R, window=1, out_features=size),
    "FrameStack.num_frames": lambda size: FrameStack(jnp.zeros(2), size),
    "Delay.k_steps": lambda size: Delay(jnp.zeros(2), size),
    "VariationalBottleneck.latent_size": lambda size: VariationalBottleneck(size, R),
    "AR1VariationalBottleneck.latent_size": lambda size: AR1VariationalBottleneck(size, R),
    "Splitter.a": lambda size: Splitter(a=size),
    "make_mlp.sizes": lambda size: make_mlp([2, size], R),
    "make_mlp_actor_critic.action_size": lambda size: make_mlp_actor_critic(2, size, [4], [4], R),
    "make_mlp_actor_critic.actor_hidden_sizes": lambda size: make_mlp_actor_critic(2, 2, [size], [4], R),
    "make_mlp_actor_critic.critic_hidden_sizes": lambda size: make_mlp_actor_critic(2, 2, [4], [size], R),
    "Normalizer.shape": Normalizer,
}
WITH_RNGS = {
    "Dense.rngs": lambda rngs: Dense(2, 2, rngs),
    "Conv.rngs": lambda rngs: Conv(2, 2, 1, rngs),
    "LSTM.rngs": lambda rngs: LSTM(2, 2, rngs),
    "GRU.rngs": lambda rngs: GRU(2, 2, rngs),
    "LRU.rngs": lambda rngs: LRU(2, 2, rngs),
    "MinGRU.rngs": lambda rngs: MinGRU(2, 2, rngs),
    "SlidingWindowAttention.rngs": lambda rngs: SlidingWindowAttention(4, rngs, window=1),
    "make_mlp.rngs": lambda rngs: make_mlp([2, 2], rngs),
    "make_mlp_actor_critic.rngs": lambda rngs: make_mlp_actor_critic(2, 2, [4], [4], rngs),
    "PopulationGraph.rngs": PopulationGraph,
    "VariationalBottleneck.rng": lambda rng: VariationalBottleneck(2, rng),
    "AR1VariationalBottleneck.rng": lambda rng: AR1VariationalBottleneck(2, rng),
    "NormalTanhSampler.rng": lambda rng: NormalTanhSampler(rng, 0.0),
    "DistributionSampler.rng": lambda rng: DistributionSampler(Discrete(2), rng),
}
BAD_RNGS = {"None": None, "7": 7, "a PRNGKeyArray": jax.random.key(0), "a ndarray": np.zeros(2, np.uint32)}
NUMBERS = {
    "LRU.r_min": lambda n: LRU(2, 2, R, r_min=n),
    "LRU.r_max": lambda n: LRU(2, 2, R, r_max=n),
    "LRU.max_phase": lambda n: LRU(2, 2, R, max_phase=n),
    "Normalizer.initial_std": lambda n: Normalizer(2, initial_std=n),
    "Normalizer.clip": lambda n: Normalizer(2, clip=n),
    "VariationalBottleneck.kl_weight": lambda n: VariationalBottleneck(2, R, n),
    "VariationalBottleneck.min_std": lambda n: VariationalBottleneck(2, R, 1.0, n),
    "AR1VariationalBottleneck.kl_weight": lambda n: AR1VariationalBottleneck(2, R, n),
    "AR1VariationalBottleneck.ar1_weight": lambda n: AR1VariationalBottleneck(2, R, ar1_weight=n),
    "NormalTanhSampler.min_std": lambda n: NormalTanhSampler(R, 0.0, n),
    "NormalTanhSampler.std_scale": lambda n: NormalTanhSampler(R, 0.0, 0.1, n),
    "make_mlp_actor_critic.initializer_scale": lambda n: make_mlp_actor_critic(2, 2, [4], [4], R, initializer_scale=n),
    "make_mlp_actor_critic.head_scale": lambda n: make_mlp_actor_critic(2, 2, [4], [4], R, head_scale=n),
}
FINITE = {
    "NormalTanhSampler.entropy_weight": lambda n: NormalTanhSampler(R, n),
    "DistributionSampler.entropy_weight": lambda n: DistributionSampler(Discrete(2), R, n),
    "Scale.factor": Scale,
}
ACTIVATED = {
    "Dense.activation": lambda f: Dense(2, 2, R, f),
    "Conv.activation": lambda f: Conv(2, 2, 1, R, f),
    "LSTM.gate_fn": lambda f: LSTM(2, 2, R, gate_fn=f),
    "LSTM.activation_fn": lambda f: LSTM(2, 2, R, activation_fn=f),
    "GRU.gate_fn": lambda f: GRU(2, 2, R, gate_fn=f),
    "GRU.activation_fn": lambda f: GRU(2, 2, R, activation_fn=f),
    "make_mlp.activation": lambda f: make_mlp([2, 2], R, f),
    "make_mlp_actor_critic.activation": lambda f: make_mlp_actor_critic(2, 2, [4], [4], R, f),
    "PopulationGraph.activation": lambda f: PopulationGraph(R).add_population("a", 2, activation=f),
}
KINDS = {kind.__name__: kind for kind in (Parallel, Map, Concat, Merge, Sequential)}
OTHERS = {
    "Sequential of a layer": lambda: Sequential(Dense(2, 2, R)),
    "Sequential of a text": lambda: Sequential("relu"),
    "Parallel of a list": lambda: Parallel([Dense(2, 2, R)]),
    "a node named 3": lambda: PopulationGraph(R).add_population(3, 2),
    "an output named 3": lambda: PopulationGraph(R).add_output("a", 2, output_to=3),
    "an input from 3": lambda: PopulationGraph(R).add_input("a", 2, input_from=3),
    "no sizes": lambda: make_mlp([], R),
    "one size": lambda: make_mlp_layers([3], R),
    "sizes that are an int": lambda: make_mlp(3, R),
    "an empty normalizer": lambda: Normalizer({}),
    "Flattener of NaN": lambda: Flattener(NAN),
    "Delay of ints from NaN": lambda: Delay(jnp.zeros(2, int), 1, NAN),
    "a negative batch": lambda: LSTM(2, 2, R).initialize_state(-1),
    "a batch of 2.0": lambda: Sequential([nnx.relu, LSTM(2, 2, R)]).initialize_state(2.0),
    "a batch of None": lambda: GRU(2, 2, R).initialize_state(None),
}


def cases():
    """Each case by its name, and what it is."""
    for name, make in SIZED.items():
        for size in (0, -3, True, 64.0, "4", None):
            if not (size is None and name.split(".")[1] in ("out_features", "qkv_features") and name[0] in "LS"):
                yield f"{name} {size!r}", lambda make=make, size=size: make(size)
    for name, make in WITH_RNGS.items():
        for what, rngs in BAD_RNGS.items():
            yield f"{name} {what}", lambda make=make, rngs=rngs: make(rngs)
    for name, make in (NUMBERS | FINITE).items():
        for number in (NAN, "1", True, *((-1.0,) if name in NUMBERS else (math.inf,))):
            yield f"{name} {number!r}", lambda make=make, number=number: make(number)
    for name, make in ACTIVATED.items():
        for value in ("rellu", 3, nnx.PReLU):
            yield f"{name} {value!r}", lambda make=make, value=value: make(value)
    for name, kind in KINDS.items():
        for key in (0, None, ("a", "b")):
            yield f"{name}.child {key!r}", lambda kind=kind, key=key: kind({key: nnx.relu})
    yield from OTHERS.items()


def outcome(case):
    """The error's type and message, or ``None``."""
    try:
        case()
    except Exception as error:
        return type(error).__name__, str(error)
    return None


if __name__ == "__main__":
    refused = {name: outcome(case) for name, case in cases()}
    taken = {name: outcome(lambda make=make: make(np.int64(4))) for name, make in SIZED.items()}
    json.dump({"refused": refused, "taken": taken}, sys.stdout)
