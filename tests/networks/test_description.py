import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import (
    GRU,
    LSTM,
    AR1VariationalBottleneck,
    Dense,
    HaikuLayer,
    Normalizer,
    NormalTanhSampler,
    PopulationGraph,
    Sequential,
    StatefulModule,
    VariationalBottleneck,
    make_mlp_actor_critic,
)

from .laws import assert_trees_close


def test_a_layer_tells_its_parameters_and_their_shapes():
    rngs = nnx.Rngs(0)
    assert str(Dense(4, 2, rngs)) == "Dense(10 parameters): linear.bias (2,), linear.kernel (4, 2)"
    assert str(Normalizer(4)).startswith("Normalizer(0 parameters, ")
    assert str(GRU(3, 4, rngs)).startswith("GRU(96 parameters, with memory): ")


def test_a_container_has_a_line_for_each_module_in_their_order():
    rngs = nnx.Rngs(0)
    text = str(Sequential([GRU(3, 4, rngs), Sequential([Dense(4, 4, rngs), Dense(4, 1, rngs)]), lambda x: x[..., 0]]))
    lines = text.splitlines()
    assert lines[0] == "Sequential(121 parameters, with memory)"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "  gru_0",
        "  sequential_1",
        "    dense_0",
        "    dense_1",
        "  function_2",
    ]
    assert lines[2] == "  sequential_1: Sequential(25 parameters)"


def test_parameters_of_the_parts_are_those_of_the_whole():
    lines = str(make_mlp_actor_critic(4, 2, [8, 8], [8], nnx.Rngs(0))).splitlines()
    counts = [int(line.split("(")[1].split(" ")[0].replace(",", "")) for line in lines]
    depth = [len(line) - len(line.lstrip()) for line in lines]
    leaves = [c for c, d, after in zip(counts, depth, [*depth[1:], 0], strict=True) if after <= d]
    assert counts[0] == sum(leaves) > 0


def test_a_graph_tells_its_connections_also_while_it_is_built():
    graph = PopulationGraph(nnx.Rngs(0))
    graph.add_input("z", 3)
    graph.add_output("a", 2)
    assert str(graph) == "PopulationGraph(0 parameters)"
    graph.connect("z", "a")
    graph.connect("a", "a", delay=1)
    assert str(graph).splitlines()[0] == "PopulationGraph(14 parameters)"
    graph.finalize()
    assert str(graph).splitlines() == [
        "PopulationGraph(14 parameters, with memory)",
        "  z->a: Dense(8 parameters): linear.bias (2,), linear.kernel (3, 2)",
        "  a->a@1: Dense(6 parameters): linear.bias (2,), linear.kernel (2, 2)",
    ]


def noise(x):
    import haiku as hk

    return hk.dropout(hk.next_rng_key(), 0.5, x)


def noisy_graph(rngs):
    graph = PopulationGraph(rngs)
    graph.add_input("z", 4)
    graph.add_output("a", 2)
    graph.connect("z", "a", transform=VariationalBottleneck(2, rngs))
    graph.finalize()
    return graph


NOISY = {
    "bottleneck": lambda rngs: VariationalBottleneck(2, rngs),
    "ar1": lambda rngs: AR1VariationalBottleneck(2, rngs),
    "dropout": lambda rngs: Sequential([nnx.Dropout(0.5, rngs=rngs)]),
    "nested": lambda rngs: Sequential([Sequential([Dense(4, 4, rngs), AR1VariationalBottleneck(2, rngs)])]),
    "haiku": lambda rngs: Sequential([HaikuLayer(noise, jnp.zeros(2), rngs)]),
    "graph": noisy_graph,
}


@pytest.mark.parametrize("make", NOISY.values(), ids=list(NOISY))
def test_printing_a_network_with_noise_draws_nothing_and_changes_nothing(make):
    net = make(nnx.Rngs(0))
    before = jax.tree.map(jnp.array, nnx.state(net))
    lines = str(net).splitlines()
    assert all("with memory" in line for line in lines if "Bottleneck" in line or "Stochastic" in line)
    assert "with memory" in lines[0] and str(net) == f"{net}" == "\n".join(lines)
    assert_trees_close(nnx.state(net), before, rtol=0, atol=0)


def test_a_network_prints_the_same_inside_of_jit_and_after_a_call_there():
    net = NOISY["nested"](nnx.Rngs(0))
    graphdef, variables = nnx.split(net)
    printed = []

    @jax.jit
    def show(variables):
        inner = nnx.merge(graphdef, variables, copy=True)
        printed.append(str(inner))
        return nnx.state(inner)

    assert_trees_close(show(variables), variables, rtol=0, atol=0)
    nnx.jit(lambda net: printed.append(str(net)))(net)
    net.initialize_state(2)
    assert printed == [str(net)] * 2


def test_an_ensemble_made_by_vmap_prints():
    def make(rngs):
        return Sequential([NOISY["nested"](rngs), NormalTanhSampler(rngs, 0.0)])

    net = nnx.vmap(make)(nnx.Rngs(0).split(3))
    counts = [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state(net, nnx.RngCount))]
    lines = str(net).splitlines()
    assert lines[0] == "Sequential(60 parameters, with memory)"
    assert "AR1VariationalBottleneck(0 parameters, with memory)" in lines[4]
    assert all(map(np.array_equal, counts, jax.tree.leaves(nnx.state(net, nnx.RngCount))))
    lstms = nnx.vmap(lambda rngs: LSTM(2, 4, rngs, trainable_initial_state=True))(nnx.Rngs(0).split(3))
    assert str(lstms).startswith("LSTM(")


def test_a_module_whose_initialize_state_fails_prints_and_says_so():
    class Broken(StatefulModule):
        def __call__(self, state, x, rollout_extras=None):
            raise NotImplementedError

        def initialize_state(self, batch_size):
            raise ZeroDivisionError

        def reset_state(self, prev_state):
            return prev_state

    assert str(Broken()) == "Broken(0 parameters, initialize_state raises ZeroDivisionError)"
