"""Random graphs against a straightforward simulation in NumPy, and in sequences as in steps."""

import jax
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import PopulationGraph

from ..laws import Pure, assert_unroll_equals_stepping, normals, reset_patterns
from .simulation import simulated

NAMES = ["a", "a->b", "a#2", "b@1", "x/y", "b"]
"""Of nodes; some look like those of connections."""
TIME, BATCH = 6, 2


@st.composite
def graphs(draw, most_nodes=4, most_edges=7):
    """Any sizes, activations, inputs, outputs and connections, with loops where there is a delay."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, most_nodes))]
    graph = PopulationGraph(nnx.Rngs(draw(st.integers(0, 9))))
    for i, name in enumerate(names):
        graph.add_input(
            name,
            draw(st.integers(1, 3)),
            input_from=name if i == 0 or draw(st.booleans()) else ("inner", name),
            activation=draw(st.sampled_from([None, nnx.tanh, nnx.relu])),
            output_to=f"of {name}" if i == len(names) - 1 or draw(st.booleans()) else None,
        )
    ends = st.integers(0, len(names) - 1)
    for _ in range(draw(st.integers(0, most_edges))):
        i, j, delay = draw(ends), draw(ends), draw(st.integers(0, 3))
        graph.connect(names[i], names[j], delay=delay if i < j else max(1, delay), use_bias=draw(st.booleans()))
    graph.finalize()
    return graph


def check(graph, resets, seed):
    def part(i, node):
        return normals(seed + i, *resets.shape, node.size)

    parts = {node.name: part(i, node) for i, node in enumerate(graph.populations)}
    obs = {**parts, "inner": {name: x + 1 for name, x in parts.items()}}
    pure = Pure(graph)
    got = pure.unroll(pure.initialize_state(resets.shape[1]), obs, resets).output
    want = simulated(graph, jax.tree.map(np.asarray, obs), np.asarray(resets))
    assert set(got) == set(want)
    for name in want:
        scale = 1 + np.abs(want[name]).max()  # loops without activation grow
        np.testing.assert_allclose(got[name] / scale, want[name] / scale, atol=1e-5)
    assert_unroll_equals_stepping(pure, jax.tree.map(lambda x: x / 8, obs), resets)


@given(graph=graphs(), resets=reset_patterns(TIME, BATCH), seed=st.integers(0, 99))
@settings(max_examples=5, deadline=None)
def test_a_random_graph_equals_its_simulation_and_a_sequence_its_steps(graph, resets, seed):
    check(graph, resets, seed)


@pytest.mark.slow
@given(
    graph=graphs(6, 14),
    data=st.data(),
    time=st.integers(1, 9),
    batch=st.integers(1, 4),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_random_graphs_of_any_size_equal_their_simulation(graph, data, time, batch, seed):
    check(graph, data.draw(reset_patterns(time, batch)), seed)
