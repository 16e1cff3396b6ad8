"""What layers do with inputs that are not float32: half precision, integers, booleans."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import (
    GRU,
    LRU,
    LSTM,
    AR1VariationalBottleneck,
    Conv,
    Delay,
    Dense,
    DistributionSampler,
    Flattener,
    FrameStack,
    MinGRU,
    Normalizer,
    NormalTanhSampler,
    PopulationGraph,
    Scale,
    Sequential,
    SlidingWindowAttention,
    Splitter,
    VariationalBottleneck,
)

from .laws import assert_trees_close, quick_jit

RNGS = nnx.Rngs(0)
BATCH, TIME = 2, 3


def graph():
    graph = PopulationGraph(RNGS)
    graph.add_input("z", 4, activation=nnx.relu)
    graph.add_output("a", 4, activation=nnx.tanh)
    graph.connect("z", "a", delay=1)
    graph.connect("a", "a", delay=2, transform=MinGRU(4, 4, RNGS))
    graph.finalize()
    return graph


LAYERS = {
    "dense": lambda: Dense(4, 2, RNGS, nnx.relu),
    "conv": lambda: Conv(4, 2, 2, RNGS),
    "lstm": lambda: LSTM(4, 3, RNGS),
    "plain lstm": lambda: LSTM(4, 3, RNGS, use_optimized=False, trainable_initial_state=True),
    "gru": lambda: GRU(4, 3, RNGS),
    "lru": lambda: LRU(4, 3, RNGS),
    "mingru": lambda: MinGRU(4, 3, RNGS),
    "mingru in bfloat16": lambda: MinGRU(4, 3, RNGS, dtype=jnp.bfloat16),
    "mingru of bfloat16": lambda: MinGRU(4, 3, RNGS, param_dtype=jnp.bfloat16),
    "attention": lambda: SlidingWindowAttention(4, RNGS, window=3, num_heads=2),
    "bottleneck": lambda: VariationalBottleneck(2, RNGS),
    "ar1 bottleneck": lambda: AR1VariationalBottleneck(2, RNGS),
    "tanh sampler": lambda: NormalTanhSampler(RNGS, 0.1),
    "discrete sampler": lambda: DistributionSampler(gym.spaces.Discrete(4), RNGS, 0.1),
    "box sampler": lambda: DistributionSampler(gym.spaces.Box(-1, 1, (2,)), RNGS, 0.1),
    "delay": lambda: Delay(jnp.zeros(4), 2),
    "frame stack": lambda: FrameStack(jnp.zeros(4), 2),
    "normalizer": lambda: Normalizer(4, clip=3.0),
    "flattener": Flattener,
    "splitter": lambda: Splitter(a=1, b=3),
    "scale": lambda: Scale(0.5),
    "dropout": lambda: Sequential([nnx.Dropout(0.5, rngs=RNGS), nnx.LayerNorm(4, rngs=RNGS)]),
    "graph": graph,
}
DTYPES = [jnp.bfloat16, jnp.float16, jnp.uint8, jnp.bool_]


def dtypes_of(tree):
    return jax.tree.map(lambda leaf: jnp.dtype(leaf.dtype), tree)


def shapes_of(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", list(LAYERS))
def test_any_dtype_keeps_the_carry_as_it_began_and_is_treated_alike_in_steps_and_sequences(name):
    net = LAYERS[name]()
    graphdef, variables = nnx.split(net)

    def call(variables, state, x):
        return nnx.merge(graphdef, variables, copy=True)(state, x)

    def unroll(variables, state, xs, resets):
        return nnx.merge(graphdef, variables, copy=True).unroll(state, xs, resets)

    def start(variables):
        return nnx.merge(graphdef, variables, copy=True).initialize_state(BATCH)

    state, features = jax.eval_shape(start, variables), (3, 3, 4) if name == "conv" else (4,)
    resets = jax.ShapeDtypeStruct((TIME, BATCH), bool)
    for dtype in DTYPES:
        step = jax.eval_shape(call, variables, state, jax.ShapeDtypeStruct((BATCH, *features), dtype))
        xs = jax.ShapeDtypeStruct((TIME, BATCH, *features), dtype)
        sequence = jax.eval_shape(unroll, variables, state, xs, resets)
        assert shapes_of(step.next_state) == shapes_of(sequence.next_state) == shapes_of(state), dtype
        ours, theirs = (dtypes_of((o.output, o.metrics, o.rollout_extras)) for o in (step, sequence))
        assert ours == theirs, dtype


@pytest.mark.parametrize("name", ["ar1 bottleneck", "tanh sampler", "dropout", "graph"])
def test_integers_and_booleans_are_taken_as_the_numbers_that_they_are(name):
    graphdef, variables = nnx.split(LAYERS[name]())

    @quick_jit
    def call(variables, x):
        net = nnx.merge(graphdef, variables, copy=True)
        return net(net.initialize_state(BATCH), x)

    for x in (np.array([[0, 1, 2, 3], [3, 1, 0, 2]], np.uint8), np.array([[0, 1, 1, 0], [1, 1, 0, 1]], bool)):
        assert_trees_close(call(variables, x), call(variables, x.astype(np.float32)))


def test_a_delay_keeps_the_dtype_of_its_sample():
    for dtype in (np.uint8, np.int32, np.bool_, jnp.bfloat16):
        lag = Delay(jnp.zeros(2, dtype), 1)
        assert lag(lag.initialize_state(1), jnp.ones((1, 2), dtype)).output.dtype == dtype


def test_a_gated_recurrence_in_half_precision_equals_its_steps():
    net = MinGRU(4, 3, RNGS, dtype=jnp.bfloat16)
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(TIME, BATCH, 4)), jnp.float32)
    state, outputs = net.initialize_state(BATCH), []
    for x in xs:
        out = net(state, x)
        state = out.next_state
        outputs.append(out.output)
    whole = net.unroll(net.initialize_state(BATCH), xs, jnp.zeros((TIME, BATCH), bool))
    assert_trees_close((whole.output, whole.next_state), (jnp.stack(outputs), state), rtol=1e-2, atol=1e-2)
