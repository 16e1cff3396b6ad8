"""Names of nodes that look like those of connections."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import PopulationGraph


def graph_of(nodes, *connections):
    """All nodes are inputs and outputs of one feature; a connection multiplies by the number given."""
    graph = PopulationGraph(nnx.Rngs(0))
    for name in nodes:
        graph.add_output(name, 1, input_from=name)
    for src, dst, delay, factor in connections:
        graph.connect(src, dst, delay=delay, transform=lambda x, factor=factor: factor * x)
    graph.finalize()
    return graph


@pytest.mark.parametrize(
    ("nodes", "connections"),
    [
        (["a#1", "b"], [("a#1", "b", 0, 10), ("a#1", "b", 0, 100)]),
        (["a", "b"], [("a", "b", 0, 10), ("a", "b", 0, 100), ("a", "b", 0, 1000)]),
        (["a", "b->c", "a->b", "c"], [("a", "b->c", 0, 10), ("a->b", "c", 0, 100)]),
        (["a", "b", "b#2"], [("a", "b#2", 0, 10), ("a", "b", 0, 100), ("a", "b", 0, 1000)]),
        (["a", "b", "b#2"], [("a", "b", 0, 10), ("a", "b", 0, 100), ("a", "b#2", 0, 1000)]),
        (["a", "b", "b@1"], [("a", "b@1", 0, 10), ("a", "b", 1, 100)]),
        (["a/b", "a", "b"], [("a/b", "b", 0, 10), ("a", "b", 0, 100)]),
        (["items", "keys"], [("items", "keys", 0, 10)]),
    ],
)
def test_no_connection_is_lost_whatever_nodes_are_called(nodes, connections):
    graph = graph_of(nodes, *connections)
    xs = {name: jnp.full((3, 1, 1), 1.0 + i) for i, name in enumerate(nodes)}
    out = graph.unroll(graph.initialize_state(1), xs, jnp.zeros((3, 1), bool))
    assert len(graph.transforms) == len(out.metrics) == len({edge.name for edge in graph.edges}) == len(connections)
    for i, name in enumerate(nodes):  # no connection leads on, so an input comes from its observation alone
        came = sum(factor * (1 + nodes.index(src)) for src, dst, _, factor in connections if dst == name)
        assert out.output[name][2, 0, 0] == 1 + i + came


def test_default_weights_differ_where_names_could_be_the_same():
    graph = PopulationGraph(nnx.Rngs(0))
    for name in ("a", "b->c", "a->b", "c"):
        graph.add_output(name, 2)
    graph.connect("a", "b->c")
    graph.connect("a->b", "c")
    first, second = (graph.transforms[edge.name].linear.kernel[...] for edge in graph.edges)
    assert np.all(first != second)
