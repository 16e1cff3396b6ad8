"""PopulationGraph against a straightforward simulation in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import Dense, PopulationGraph, Sequential, SizeError, VariationalBottleneck
from triax.networks.graph.parts import Edge, components, topological_order

from ..laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, quick_jit, random_resets, reset_patterns
from .simulation import simulated


def brain(seed=0):
    """Two inputs, a loop over three nodes, a self-loop, and delays within and outside of loops."""
    g = PopulationGraph(nnx.Rngs(seed))
    g.add_input("eye", 2, input_from="image", activation=nnx.tanh)
    g.add_input("ear", 1, input_from=("sound", 0))
    g.add_population("a", 3, activation=nnx.tanh)
    g.add_population("b", 2, activation=nnx.relu)
    g.add_population("c", 2)
    g.add_output("hand", 2, output_to="motor", activation=nnx.tanh)
    g.add_output("foot", 1)
    g.connect("eye", "a")
    g.connect("ear", "a", delay=3)
    g.connect("a", "b")
    g.connect("b", "c", delay=1)
    g.connect("c", "a", delay=2)
    g.connect("c", "c", delay=1)
    g.connect("b", "hand", delay=2)
    g.connect("eye", "hand")
    g.connect("hand", "foot", delay=1)
    g.connect("ear", "foot")
    g.finalize()
    return g


def observations(seed, time=TIME, batch=BATCH):
    return {"image": normals(seed, time, batch, 2), "sound": [normals(seed + 1, time, batch, 1)]}


GRAPH = brain()
PURE = Pure(GRAPH)


@given(resets=reset_patterns(), seed=st.integers(0, 9))
@settings(max_examples=8, deadline=None)
def test_equals_a_simulation(resets, seed):
    obs = observations(seed)
    got = PURE.unroll(PURE.initialize_state(BATCH), obs, resets).output
    want = simulated(GRAPH, jax.tree.map(np.asarray, obs), np.asarray(resets))
    assert set(got) == {"motor", "foot"}
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5)


@given(resets=reset_patterns(), warm=reset_patterns(), seed=st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_unroll_equals_stepping_from_any_carry(resets, warm, seed):
    state = PURE.unroll(PURE.initialize_state(BATCH), observations(seed + 50), warm).next_state
    assert_unroll_equals_stepping(PURE, observations(seed), resets, state)


def test_a_delayed_self_loop_accumulates():
    g = PopulationGraph(nnx.Rngs(0))
    g.add_output("sum", 1, input_from="x")
    g.connect("sum", "sum", transform=lambda x: x, delay=1)
    g.finalize()
    xs, resets = jnp.array([1.0, 2, 3, 4])[:, None, None], jnp.zeros((4, 1), bool)
    out = g.unroll(g.initialize_state(1), {"x": xs}, resets.at[3].set(True))
    np.testing.assert_array_equal(out.output["sum"][:, 0, 0], [1, 3, 6, 4])


def test_only_loops_are_scanned():  # F41
    g = PopulationGraph(nnx.Rngs(0))
    g.add_input("x", 2, input_from="x")
    g.add_output("y", 2)
    g.connect("x", "y", delay=3)
    g.connect("x", "y")
    g.finalize()
    state, resets = g.initialize_state(BATCH), jnp.zeros((TIME, BATCH), bool)
    jaxpr = jax.make_jaxpr(lambda xs: g.unroll(state, {"x": xs}, resets).output)(normals(0, TIME, BATCH, 2))
    names = [equation.primitive.name for equation in jaxpr.eqns]
    assert "scan" not in names and names.count("dot_general") == 2


def test_nothing_of_the_old_episode_is_visible_after_a_reset():
    resets = jnp.zeros((TIME, 1), bool).at[3].set(True)
    state = jax.tree.map(lambda leaf: leaf + 1.0, GRAPH.initialize_state(1))

    def after(obs, state):
        out = GRAPH.unroll(state, obs, resets).output
        return sum(jnp.sum(leaf[3:]) for leaf in out.values())

    by_obs, by_carry = quick_jit(jax.grad(after, (0, 1)))(observations(0, TIME, 1), state)
    for leaf in jax.tree.leaves(by_obs):
        assert np.all(np.asarray(leaf[:3]) == 0) and np.any(np.asarray(leaf[3:]) != 0)
    assert all(np.all(np.asarray(leaf) == 0) for leaf in jax.tree.leaves(by_carry))


def test_losses_are_one_number_an_environment_and_metrics_are_by_connection():  # F8
    g = PopulationGraph(nnx.Rngs(0))
    g.add_input("x", 4, input_from="x")
    g.add_output("y", 2)
    g.connect("x", "y", transform=VariationalBottleneck(2, nnx.Rngs(1)))
    g.finalize()
    out = g(g.initialize_state(BATCH), {"x": normals(0, BATCH, 4)})
    assert out.regularization_loss.shape == (BATCH,)
    np.testing.assert_array_equal(out.metrics["x->y"]["kl_divergence"], out.regularization_loss)
    assert out.rollout_extras == {"connections": [None]}


def test_transforms_with_a_carry_keep_theirs_inside_loops():
    g = PopulationGraph(nnx.Rngs(0))
    g.add_output("x", 2, input_from="x", activation=nnx.tanh)
    g.connect(
        "x", "x", transform=Sequential([Dense(2, 4, nnx.Rngs(3)), VariationalBottleneck(2, nnx.Rngs(1))]), delay=1
    )
    g.connect("x", "x", delay=2)
    g.finalize()
    xs = {"x": normals(0, TIME, BATCH, 2)}
    assert_unroll_equals_stepping(Pure(g), xs, random_resets(0))


def test_adding_a_connection_changes_no_other_weights():
    def kernel(extra):
        g = PopulationGraph(nnx.Rngs(0))
        g.add_input("x", 2, input_from="x")
        g.add_output("y", 2)
        if extra:
            g.connect("x", "x", delay=1)
        g.connect("x", "y")
        return g.transforms["x->y"].linear.kernel[...]

    np.testing.assert_array_equal(kernel(False), kernel(True))


def test_a_node_can_be_input_and_output_and_biases_can_be_left_out():  # F39
    g = PopulationGraph(nnx.Rngs(0))
    g.add_input("x", 1, input_from=("deep", 1), output_to="seen")
    g.add_output("y", 2)
    g.connect("x", "y", use_bias=False)
    g.finalize()
    out = g(g.initialize_state(1), {"deep": [None, jnp.ones((1, 1))]}).output
    assert out["seen"] == 1 and out["y"].shape == (1, 2)
    assert len(jax.tree.leaves(nnx.state(g, nnx.Param))) == 1


def open_graph():
    g = PopulationGraph(nnx.Rngs(0))
    for name in "abcd":
        g.add_population(name, 2)
    g.add_output("out", 2)
    return g


def test_the_cycle_is_named_at_once_without_innocent_nodes():  # F35
    g = open_graph()
    for src, dst in ("ab", "bc", "cd"):
        g.connect(src, dst)
    before = g.edges
    with pytest.raises(ValueError, match=r"would form the cycle c -> a -> b -> c\. Give one"):
        g.connect("c", "a")
    with pytest.raises(ValueError, match=r"cycle d -> d\."):
        g.connect("d", "d")
    with pytest.raises(ValueError, match=r"cycle out -> d -> out"):
        g.connect("d", "out", reciprocal=True)
    assert g.edges == before and set(g.transforms) == {e.name for e in before}
    g.connect("c", "a", delay=1)
    g.connect("d", "out", delay=1, reciprocal=True)
    g.finalize()
    assert [(c.src, c.dst, c.delay) for c in g.connections][-2:] == [("d", "out", 1), ("out", "d", 1)]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda g: g.add_population("a", 2), "a node 'a' already"),
        (lambda g: g.add_population("z", 0), "size of 'z' must be at least 1; got 0"),
        (lambda g: g.add_output("z", 2, output_to="out"), "'out' and 'z' both give the output 'out'"),
        (lambda g: g.connect("a", "q"), r"no node 'q'; there are \['a', 'b'"),
        (lambda g: g.connect("a", "b", delay=-1), "delay of a -> b must be at least 0; got -1"),
        (lambda g: g.connect("a", "b", transform=nnx.relu, delay=1, reciprocal=True), "cannot share a transform"),
    ],
)
def test_what_cannot_be_built_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build(open_graph())


def test_order_of_life_is_build_finalize_use():
    g = open_graph()
    for use in (lambda: g.initialize_state(1), lambda: g({}, {})):
        with pytest.raises(RuntimeError, match="call finalize"):
            use()
    g.finalize()
    for change in (lambda: g.add_population("z", 1), lambda: g.connect("a", "b"), g.finalize):
        with pytest.raises(RuntimeError, match="cannot change any more"):
            change()


def test_what_does_not_fit_a_node_is_refused_by_name():  # F34
    g = PopulationGraph(nnx.Rngs(0))
    g.add_input("eye", 3, input_from="x")
    g.add_output("y", 4)
    g.connect("eye", "y", transform=lambda x: x[:, :1])
    g.finalize()
    state = g.initialize_state(2)
    with pytest.raises(SizeError, match=r"the node 'y': takes 4 .*; the transform <lambda> of eye->y gives 1"):
        g(state, {"x": jnp.ones((2, 3))})
    with pytest.raises(ValueError, match=r"node 'eye' takes \[2, 3\] from 'x'; got \[2, 1\]"):
        g(state, {"x": jnp.ones((2, 1))})
    with pytest.raises(KeyError, match=r"no 'x' for the node 'eye' \('x'\); there is \['z'\]"):
        g(state, {"z": jnp.ones((2, 1))})


@given(
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10),
)
@settings(max_examples=50, deadline=None)
def test_groups_are_what_reaches_each_other_in_a_forward_order(pairs):
    names = list("abcdef")
    edges = [Edge("", names[i], names[j], 0) for i, j in pairs]
    reach = np.eye(6, dtype=bool)
    for i, j in pairs:
        reach[i, j] = True
    for _ in range(6):
        reach = reach | ((reach.astype(int) @ reach.astype(int)) > 0)
    groups = components(names, edges)
    place = {name: k for k, group in enumerate(groups) for name in group}
    assert sorted(place) == names
    for i, j in [(i, j) for i in range(6) for j in range(6)]:
        assert (place[names[i]] == place[names[j]]) == (reach[i, j] and reach[j, i])
    assert all(place[edge.src] <= place[edge.dst] for edge in edges)


def test_ties_keep_the_order_of_insertion():
    assert topological_order("cab", [Edge("", "b", "c", 0)]) == ("a", "b", "c")


def test_an_input_without_a_key_takes_the_whole_observation():
    g = PopulationGraph(nnx.Rngs(0))
    g.add_input("eye", 3, output_to="y")
    g.finalize()
    x = jnp.arange(6.0).reshape(2, 3)
    state = g.initialize_state(2)
    np.testing.assert_array_equal(g(state, x).output["y"], x)
    with pytest.raises(ValueError, match=r"'eye' takes \[2, 3\] from the whole observation .*; got \[2, 4\]"):
        g(state, jnp.ones((2, 4)))
    with pytest.raises(ValueError, match=r"the whole observation .*; got a tree, .*'a'"):
        g(state, {"a": x})


def test_extras_and_carries_of_another_graph_are_refused():
    small, state = open_graph(), GRAPH.initialize_state(2)
    small.finalize()
    obs, other = jax.tree.map(lambda leaf: leaf[0, :2], observations(0)), {"connections": []}
    for extras, got in ((other, r"with 10 connections; got 0"), ((), "got tuple"), ({"x": 1}, r"got \['x'\]")):
        message = f"PopulationGraph: the rollout_extras must be those of a rollout of this graph.*{got}"
        for use in (lambda e=extras: GRAPH(state, obs, e), lambda e=extras: GRAPH.update_statistics(e)):
            with pytest.raises(ValueError, match=message):
                use()
        with pytest.raises(ValueError, match=message):
            sequence = jax.tree.map(lambda leaf: leaf[:1, :2], observations(0))
            GRAPH.unroll(state, sequence, jnp.zeros((1, 2), bool), extras)
    with pytest.raises(ValueError, match=r"the carry must be like .*with 10 connections; got 0"):
        GRAPH.reset_state(small.initialize_state(2))
    GRAPH.update_statistics(GRAPH(state, obs).rollout_extras)


def test_a_graph_without_outputs_runs_and_gives_an_empty_dict():
    graph = PopulationGraph(nnx.Rngs(0))
    graph.add_input("a", 2, input_from="x")
    graph.connect("a", "a", delay=1)
    graph.finalize()
    out = graph(graph.initialize_state(3), {"x": jnp.ones((3, 2))})
    assert out.output == {} and out.next_state is not None
