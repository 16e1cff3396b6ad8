"""Whole sequences through networks with memory, beside the same network scanned step by step.

    python benchmarks/unroll.py [--repeats 150] [--check]

Forward and backward pass (gradient of the parameters) over [time, batch] minibatches, one core is enough. Times are
milliseconds, the best of all repeats. Variants of one row run alternately, and a ratio is the median of those within
one turn, so that a drifting machine hits both alike. Beside the time of one flat call stands what does not vary: the
bytes that the compiled program moves, in those of the flat one. ``--check`` exits with 1 where a budget is missed. At
large batches a sequence costs about what its multiplications cost in either form: a layer without memory gains as much
as one flat call does, which depends on its activation, and a cell must only not lose.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.networks import GRU, LRU, LSTM, Delay, Dense, MinGRU, Parallel, Sequential, StatefulModule
from triax.networks.unrolling import scan_steps

FEATURES, HIDDEN = 32, 64
SIZES = ((128, 64), (20, 256), (128, 4))
SAME = 1 / 1.05
"""As fast, up to what a measurement varies by."""


@dataclass(frozen=True)
class Budget:
    """``slow`` must take at least ``factor`` times as long as ``fast``."""

    slow: str
    fast: str
    factor: float


def mlp(rngs: nnx.Rngs, activation: Callable[..., Any] = nnx.swish, *, delay: int = 0) -> Sequential:
    """Actor and critic of two hidden layers each."""
    first = [Delay(jnp.zeros(FEATURES), delay)] if delay else []

    def port(outputs: int) -> Sequential:
        hidden = [Dense(FEATURES, HIDDEN, rngs, activation), Dense(HIDDEN, HIDDEN, rngs, activation)]
        return Sequential([*hidden, Dense(HIDDEN, outputs, rngs)])

    return Sequential([*first, Parallel(actor=port(8), critic=port(1))])


def heads(rngs: nnx.Rngs) -> Parallel:
    return Parallel(
        actor=Sequential([Dense(HIDDEN, HIDDEN, rngs, nnx.tanh), Dense(HIDDEN, 8, rngs)]),
        critic=Sequential([Dense(HIDDEN, HIDDEN, rngs, nnx.tanh), Dense(HIDDEN, 1, rngs)]),
    )


def with_memory(memory: Callable[..., StatefulModule], rngs: nnx.Rngs) -> Sequential:
    return Sequential([Dense(FEATURES, HIDDEN, rngs, nnx.relu), memory(HIDDEN, HIDDEN, rngs), heads(rngs)])


def inputs(steps: int, batch: int) -> tuple[jax.Array, jax.Array]:
    keys = jax.random.split(jax.random.key(0))
    resets = jax.random.bernoulli(keys[1], 0.02, (steps, batch))
    return jax.random.normal(keys[0], (steps, batch, FEATURES)), resets


def gradient(net: StatefulModule, sequence: Callable[..., Any]) -> Callable[..., Any]:
    """A jitted gradient of the parameters of ``net``, run over a sequence by ``sequence``."""
    graphdef, params, rest = nnx.split(net, nnx.Param, ...)

    def loss(params: Any, state: Any, xs: jax.Array, resets: jax.Array) -> jax.Array:
        output = sequence(nnx.merge(graphdef, params, rest, copy=True), state, xs, resets)
        return sum((jnp.mean(jnp.square(leaf)) for leaf in jax.tree.leaves(output)), jnp.zeros(()))

    return partial(jax.jit(jax.grad(loss)), params)


def scanned(net: Any, state: Any, xs: jax.Array, resets: jax.Array) -> Any:
    return scan_steps(net, state, xs, resets, None).output


def unrolled(net: Any, state: Any, xs: jax.Array, resets: jax.Array) -> Any:
    return net.unroll(state, xs, resets).output


def flat(net: Any, state: Any, xs: jax.Array, resets: jax.Array) -> Any:
    return net(state, xs.reshape(-1, xs.shape[-1])).output


def timed(variants: dict[str, tuple[Callable[..., Any], tuple]], repeats: int) -> dict[str, np.ndarray]:
    """Milliseconds of each call, called in turns, each as often first: caches know who was before."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for function, args in variants.values():
        jax.block_until_ready(function(*args))
    order = list(variants)
    for _ in range(repeats):
        order.append(order.pop(0))
        for name in order:
            function, args = variants[name]
            start = time.perf_counter()
            jax.block_until_ready(function(*args))
            times[name].append(time.perf_counter() - start)
    return {name: 1e3 * np.array(values) for name, values in times.items()}


def bytes_moved(call: tuple[Any, tuple]) -> float:
    """By the compiled program, as XLA counts them: the same in every run."""
    function, args = call
    return function.func.lower(*function.args, *args).compile().cost_analysis()["bytes accessed"]


def row(title: str, size: tuple[int, int], variants: dict, budgets: list[Budget], repeats: int) -> bool:
    """Print one row; are all budgets kept?"""
    xs, resets = inputs(*size)
    calls = {
        name: (gradient(net, sequence), (net.initialize_state(size[1]), xs, resets))
        for name, (net, sequence) in variants.items()
    }
    took = timed(calls, repeats)
    kept = True
    notes = []
    for budget in budgets:
        ratio = float(np.median(took[budget.slow] / took[budget.fast]))
        kept &= ratio >= budget.factor
        if budget.slow == "flat":
            notes.append(f"bytes {bytes_moved(calls['unroll']) / bytes_moved(calls['flat']):.3f} of flat's")
        mark = "ok" if ratio >= budget.factor else "MISSED"
        notes.append(f"{budget.slow}/{budget.fast} {ratio:.2f} (at least {budget.factor:.2f}: {mark})")
    print(
        f"{title:12s} {size!s:10s}",
        " ".join(f"{n} {ms.min():7.2f}" for n, ms in took.items()),
        "|",
        "; ".join(notes),
    )
    return kept


def second_call_compiles(net: StatefulModule, size: tuple[int, int]) -> bool:
    """Does a second call with the first one's results compile anything?"""
    xs, resets = inputs(*size)
    graphdef, variables = nnx.split(net)
    traces = []

    @jax.jit
    def call(variables: Any, state: Any) -> Any:
        traces.append(1)
        return nnx.merge(graphdef, variables, copy=True).unroll(state, xs, resets).next_state

    state = net.initialize_state(size[1])
    for _ in range(2):
        state = call(variables, state)
    return len(traces) > 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=150)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rngs = nnx.Rngs(0)
    kept = []
    for size in SIZES:
        small = size[1] == 4
        for title, activation in (
            ("MLP swish", nnx.swish),
            ("MLP tanh", nnx.tanh),
        ):
            net = mlp(rngs, activation)
            variants = {"scan": (net, scanned), "unroll": (net, unrolled), "flat": (net, flat)}
            budgets = [Budget("scan", "unroll", 3.0 if small else 1.5), Budget("flat", "unroll", SAME)]
            kept.append(row(title, size, variants, budgets, options.repeats))
        for title, memory in (("LSTM", LSTM), ("GRU", GRU)):
            net = with_memory(memory, rngs)
            variants = {"scan": (net, scanned), "unroll": (net, unrolled)}
            kept.append(row(title, size, variants, [Budget("scan", "unroll", 2.5 if small else 1.0)], options.repeats))
        variants = {"delay": (mlp(rngs, delay=3), unrolled), "none": (mlp(rngs), unrolled)}
        kept.append(row("Delay", size, variants, [Budget("none", "delay", 1 / 1.1)], options.repeats))
    for size in ((512, 4), (512, 16)):
        variants = {m.__name__: (with_memory(m, rngs), unrolled) for m in (LSTM, LRU, MinGRU)}
        kept.append(row("linear", size, variants, [Budget("LSTM", "LRU", 1.0)], options.repeats))
    nets = (mlp(rngs, delay=3), with_memory(LSTM, rngs), with_memory(LRU, rngs))
    kept.append(not any(second_call_compiles(net, SIZES[2]) for net in nets))
    print("no second compilation:", kept[-1])
    return 1 if options.check and not all(kept) else 0


if __name__ == "__main__":
    sys.exit(main())
