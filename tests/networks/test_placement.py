"""Each layer has one place in a network; names, sizes and instances are checked when networks are put together."""

import jax.numpy as jnp
import pytest
from flax import nnx

from triax.networks import (
    Container,
    Dense,
    Parallel,
    PopulationGraph,
    PPOAdapter,
    Sequential,
    SizeError,
)

RNGS = nnx.Rngs(0)


def dense():
    return Dense(3, 3, RNGS)


class Holder(nnx.Module):
    """A plain module of a user with two parts."""

    def __init__(self, first, second):
        self.first, self.rest = first, nnx.List([second])

    def __call__(self, x):
        return self.rest[0](self.first(x))


def graph(*transforms):
    net = PopulationGraph(RNGS)
    net.add_input("eye", 3)
    net.add_output("hand", 3)
    for transform in transforms:
        net.connect("eye", "hand", transform=transform)
    net.finalize()
    return net


TWICE = {
    "siblings": (lambda d: Sequential([d, d]), "dense_0", "dense_1"),
    "nested": (lambda d: Sequential([d, Parallel(a=Sequential([d]))]), "dense_0", "parallel_1/a/dense_0"),
    "cousins": (lambda d: PPOAdapter(Sequential([d]), Sequential([d])), "action/dense_0", "value/dense_0"),
    "in a plain module": (lambda d: Sequential([Holder(d, d)]), "holder_0/first", "holder_0/rest/0"),
    "in and beside one": (lambda d: Sequential([d, Holder(dense(), d)]), "dense_0", "holder_1/rest/0"),
    "in a graph": (lambda d: graph(d, Sequential([d])), "eye->hand", "eye->hand#2/dense_0"),
    "in and beside a graph": (
        lambda d: Sequential([graph(d), d]),
        "population_graph_0/transforms/eye->hand",
        "dense_1",
    ),
}


@pytest.mark.parametrize(("build", "first", "second"), TWICE.values(), ids=TWICE)
def test_a_layer_used_twice_anywhere_in_the_tree_is_refused_with_both_places(build, first, second):
    with pytest.raises(ValueError, match=f"'{first}' and '{second}' are the same module; a child cannot be used twice"):
        build(dense())


def test_a_plain_module_that_is_a_child_twice_is_refused_in_any_depth():
    linear = nnx.Linear(3, 3, rngs=RNGS)
    with pytest.raises(ValueError, match=r"'linear_0' and 'parallel_1/a' are the same module.*second Linear"):
        Sequential([linear, Parallel(a=linear)])


def test_weights_shared_inside_plain_modules_are_legal():
    linear = nnx.Linear(3, 3, rngs=RNGS)
    net = Sequential([Holder(linear, linear), Parallel(a=Holder(linear, dense_layer := nnx.Linear(3, 2, rngs=RNGS)))])
    x = jnp.ones((2, 3))
    out = net(net.initialize_state(2), x).output["a"]
    assert jnp.array_equal(out, dense_layer(linear(linear(linear(x)))))


def test_a_function_may_stand_in_many_places():
    Sequential([nnx.relu, nnx.relu, Parallel(a=nnx.relu, b=Sequential([nnx.relu]))])


def test_a_container_may_keep_its_children_under_names_of_its_own():
    class Own(Container):
        def __init__(self):
            self.encoder = dense()
            super().__init__(inner=self.encoder)

        def wire(self, run, x):
            return run("inner", x)

    net = Sequential([Own(), dense()])
    assert net(net.initialize_state(2), jnp.ones((2, 3))).output.shape == (2, 3)


def test_a_container_that_contains_itself_is_refused():
    class Loop(Container):
        def __init__(self):
            super().__init__(again=Sequential([self]))

        def wire(self, run, x):
            return run("again", x)

    with pytest.raises(ValueError, match="'again/loop_0' is the Loop that it is inside of; a network cannot contain"):
        Loop()
    net = Sequential([dense(), nnx.relu])
    net.components["relu_1"] = Parallel(a=net)
    with pytest.raises(ValueError, match="that it is inside of; a network cannot contain itself"):
        net.initialize_state(1)
    with pytest.raises(ValueError, match="is the Sequential that it is inside of"):
        Parallel(b=net)


def test_a_graph_that_contains_itself_is_refused_and_stays_as_it_was():
    net = PopulationGraph(RNGS)
    net.add_output("hand", 3)
    with pytest.raises(ValueError, match="'hand->hand@1/b' is the PopulationGraph that it is inside of"):
        net.connect("hand", "hand", delay=1, transform=Parallel(a=dense(), b=net))
    assert not net.edges and not len(net.transforms)


@pytest.mark.parametrize("layer", [Dense, nnx.Linear])
def test_a_class_in_place_of_a_layer_is_refused_as_such(layer):
    with pytest.raises(TypeError, match=rf"got the class {layer.__name__}. Make one: {layer.__name__}\(") as error:
        Parallel(a=layer)
    assert error.value.__notes__ == ["At 'a' of Parallel."]


def test_sizes_that_do_not_match_in_a_graph_name_both_layers_and_both_sizes():
    net = PopulationGraph(RNGS)
    net.add_input("eye", 3)
    net.add_output("hand", 2)
    with pytest.raises(SizeError, match=r"the transform Dense of eye->hand: takes 5 .*; the node 'eye' gives 3"):
        net.connect("eye", "hand", transform=Dense(5, 2, RNGS))
    with pytest.raises(SizeError, match=r"the node 'hand': takes 2 .*; the transform Linear of eye->hand gives 4"):
        net.connect("eye", "hand", transform=nnx.Linear(3, 4, rngs=RNGS))
    assert not net.edges
    net.connect("eye", "hand", transform=Sequential([nnx.relu, Dense(5, 2, RNGS)]))
    net.finalize()
    with pytest.raises(SizeError, match=r"dense_1 \(Dense\): takes 5 features.*; relu_0 gives 3"):
        net(net.initialize_state(1), jnp.ones((1, 3)))
