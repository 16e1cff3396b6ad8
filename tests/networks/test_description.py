from flax import nnx

from triax.networks import GRU, Dense, Normalizer, PopulationGraph, Sequential, make_mlp_actor_critic


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
