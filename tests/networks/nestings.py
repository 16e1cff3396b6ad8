"""Random networks of all kinds of layers and containers, in any nesting."""

import jax.numpy as jnp
from flax import nnx
from hypothesis import strategies as st

from triax.networks import (
    GRU,
    LRU,
    LSTM,
    AR1VariationalBottleneck,
    Concat,
    Container,
    Delay,
    Dense,
    FrameStack,
    Map,
    Merge,
    MinGRU,
    Normalizer,
    NormalTanhSampler,
    Parallel,
    PopulationGraph,
    Sequential,
    SlidingWindowAttention,
    StatefulModule,
    StatefulModuleOutput,
    VariationalBottleneck,
    with_recording,
)

RNGS = nnx.Rngs(0)


class Counter(StatefulModule):
    """Adds the number of steps of the episode; loss and metrics say the number, extras give the input."""

    def __call__(self, state, x, rollout_extras=None):
        count = state + 1
        return StatefulModuleOutput(count, x + count[:, None], 1.0 * count, {"count": count}, x)

    def initialize_state(self, batch_size):
        return jnp.zeros(batch_size, jnp.int32)

    def reset_state(self, prev_state):
        return jnp.zeros_like(prev_state)


class Residual(Container):
    """The docs' example of an own container."""

    def wire(self, run, x):
        return jnp.concatenate([x, run("inner", x)], axis=1).reshape(x.shape[0], 2, -1).sum(1)


def loop(n):
    """A graph with a loop, as a layer."""
    graph = PopulationGraph(RNGS)
    graph.add_output("a", n, input_from=(), activation=nnx.tanh)
    graph.add_output("b", n)
    graph.connect("a", "b", delay=1)
    graph.connect("b", "a", delay=2)
    graph.finalize()
    return Sequential([graph, lambda d: d["a"] + d["b"]])


LAYERS = {
    "dense": lambda n: Dense(n, n, RNGS, nnx.tanh),
    "linear": lambda n: nnx.Linear(n, n, rngs=RNGS),
    "relu": lambda n: nnx.relu,
    "dropout": lambda n: nnx.Dropout(0.3, rngs=RNGS),
    "normalizer": Normalizer,
    "counter": lambda n: Counter(),
    "delay": lambda n: Delay(jnp.zeros(n), 2, 0.5),
    "frames": lambda n: Sequential([FrameStack(jnp.zeros(n), 2), Dense(2 * n, n, RNGS)]),
    "lstm": lambda n: LSTM(n, n, RNGS, trainable_initial_state=True),
    "gru": lambda n: GRU(n, n, RNGS),
    "lru": lambda n: LRU(n, n, RNGS),
    "mingru": lambda n: MinGRU(n, n, RNGS),
    "attention": lambda n: SlidingWindowAttention(n, RNGS, window=3, num_heads=1),
    "graph": loop,
    "bottleneck": lambda n: Sequential([Dense(n, 2 * n, RNGS), VariationalBottleneck(n, RNGS)]),
    "ar1 bottleneck": lambda n: Sequential([Dense(n, 2 * n, RNGS), AR1VariationalBottleneck(n, RNGS)]),
    "sampler": lambda n: Sequential([Dense(n, 2 * n, RNGS), NormalTanhSampler(RNGS, 0.1), lambda d: d["action"]]),
}
"""Each is ``[batch, n] -> [batch, n]``."""
CONTAINERS = ["sequential", "parallel", "concat", "residual", "map", "merge", "recorded"]


@st.composite
def nestings(draw, n, depth=2):
    """A random network ``[batch, n] -> [batch, n]``."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return LAYERS[draw(st.sampled_from(list(LAYERS)))](n)
    parts = [draw(nestings(n, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    names = [f"p{9 - i}" for i in range(len(parts))]
    return joined(draw(st.sampled_from(CONTAINERS)), dict(zip(names, parts, strict=True)), n)


def joined(kind, parts, n):
    """The parts in a container of that kind, between layers that fit them to ``n`` features."""
    spread, add = (lambda x: dict.fromkeys(parts, x)), (lambda d: sum(d.values()))
    if kind == "sequential":
        return Sequential(list(parts.values()))
    if kind == "recorded":
        return with_recording(Sequential(list(parts.values())))
    if kind == "residual":
        return Residual(inner=Sequential(list(parts.values())))
    if kind == "parallel":
        return Sequential([Parallel(parts), add])
    if kind == "map":
        return Sequential([spread, Map(parts), add])
    if kind == "merge":
        keyed = {name: Sequential([part, lambda x, name=name: {name: x}]) for name, part in parts.items()}
        return Sequential([Merge(keyed), add])
    return Sequential([spread, Concat(parts), lambda y: y[:, :n] + y[:, -n:]])
