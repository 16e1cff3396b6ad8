"""Containers: routing, declared order, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import (
    Concat,
    Container,
    Delay,
    Dense,
    Map,
    Merge,
    Parallel,
    Sequential,
    SizeError,
)

from .laws import BATCH, TIME, Pure, normals, random_resets
from .nestings import Counter

RNGS = nnx.Rngs(0)


def dense(a, b):
    return Dense(a, b, RNGS)


def test_sequential_is_the_chain():
    net = Sequential([dense(3, 4), nnx.relu, dense(4, 2), lambda y: y.sum(-1)])
    x = normals(0, 5, 3)
    want = net[2]((), nnx.relu(net[0]((), x).output)).output.sum(-1)
    out = net(net.initialize_state(5), x)
    np.testing.assert_allclose(out.output, want, rtol=1e-6)
    assert out.next_state == [(), (), (), ()] and out.rollout_extras == [None] * 4


def test_layers_are_named_by_what_they_are_and_where():  # F59: no integers among the keys
    net = Sequential([dense(3, 4), nnx.Linear(4, 4, rngs=RNGS), nnx.relu, lambda x: x, jnp.tanh, Counter()])
    names = ("dense_0", "linear_1", "relu_2", "function_3", "tanh_4", "counter_5")
    assert tuple(net.children) == names == tuple(net(net.initialize_state(1), jnp.ones((1, 3))).metrics)
    named = Sequential({"in": dense(3, 4), "out": dense(4, 1)})
    assert tuple(named.children) == ("in", "out") and len(named) == 2


def test_an_empty_sequence_is_the_identity():
    x, resets = normals(0, TIME, BATCH, 2), jnp.zeros((TIME, BATCH), bool)
    np.testing.assert_array_equal(Sequential([])([], x[0]).output, x[0])
    out = Sequential([]).unroll([], x, resets)
    np.testing.assert_array_equal(out.output, x)
    assert out.regularization_loss.shape == (TIME, BATCH)


def test_parallel_map_and_merge_route_by_name():
    x = normals(0, 2, 3)
    out = Parallel(a=lambda x: x + 1, b=Counter())({"a": (), "b": jnp.zeros(2, jnp.int32)}, x)
    np.testing.assert_array_equal(out.output["a"], x + 1)
    np.testing.assert_array_equal(out.next_state["b"], [1, 1])
    assert out.rollout_extras["a"] is None and out.metrics["b"]["count"].shape == (2,)
    mapped = Map({"left arm": lambda x: -x, "b": lambda x: 2 * x})
    got = mapped(mapped.initialize_state(2), {"left arm": x, "b": x, "ignored": x}).output
    np.testing.assert_array_equal(got["left arm"], -x)
    assert set(got) == {"left arm", "b"}
    merged = Merge(p=lambda x: {"u": x, "v": x + 1}, q=lambda x: {"w": x + 2})
    np.testing.assert_array_equal(merged(merged.initialize_state(2), x).output["w"], x + 2)


def test_concat_keeps_the_declared_order_in_every_form():  # F1
    net = Concat(zebra=lambda x: x, ant=lambda x: x)
    x = {"ant": jnp.zeros((1, 1)), "zebra": jnp.ones((1, 2))}
    graphdef, variables = nnx.split(net)
    merged = nnx.merge(graphdef, variables)
    jitted = jax.jit(lambda v, x: nnx.merge(graphdef, v)({"zebra": (), "ant": ()}, x).output)
    state = net.initialize_state(1)
    for got in (net(state, x).output, merged(state, x).output, jitted(variables, x)):
        np.testing.assert_array_equal(got, [[1, 1, 0]])
    assert tuple(merged.children) == ("zebra", "ant")


def test_losses_of_children_add_up_per_environment():
    net = Sequential([Counter(), Parallel(a=Counter(), b=Counter())])
    state = net.initialize_state(2)
    out = net(state, jnp.zeros((2, 1)))
    np.testing.assert_array_equal(out.regularization_loss, [3, 3])


def test_statistics_reach_every_child():  # F36
    class Learner(Counter):
        def __init__(self):
            self.total = nnx.Variable(jnp.zeros(()))

        def update_statistics(self, rollout_extras):
            self.total[...] = rollout_extras.sum()

    first, second = Learner(), Learner()
    net = Sequential([first, Parallel(a=Map(x=second))])
    extras = [jnp.ones((2, 3)), {"a": {"x": jnp.ones((4, 5))}}]
    net.update_statistics(extras)
    assert (first.total[...], second.total[...]) == (6, 20)


def test_a_batch_of_environments_equals_batches_of_one():
    net = Sequential([dense(3, 3), Delay(jnp.zeros(3), 1), Counter()])
    pure, xs = Pure(net), normals(0, TIME, BATCH, 3)
    resets = random_resets(1)
    whole = pure.unroll(pure.initialize_state(BATCH), xs, resets).output
    for b in range(BATCH):
        one = pure.unroll(pure.initialize_state(1), xs[:, b : b + 1], resets[:, b : b + 1]).output
        np.testing.assert_allclose(one[:, 0], whole[:, b], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [Parallel, Concat, Map, Merge])
def test_construction_refuses_no_children_and_two_forms_at_once(kind):
    with pytest.raises(ValueError, match="at least one child"):
        kind()
    with pytest.raises(ValueError, match="not both"):
        kind({"a": nnx.relu}, b=nnx.relu)


def test_refuses_a_module_used_twice():
    layer = dense(2, 2)
    with pytest.raises(ValueError, match="'a' and 'b' are the same module; a child cannot be used twice"):
        Parallel(a=layer, b=layer)
    with pytest.raises(ValueError, match="used twice"):
        Sequential([layer, nnx.relu, layer])
    Sequential([nnx.relu, nnx.relu])


class Wired(Container):
    def __init__(self, wiring, **children):
        super().__init__(**children)
        self.wiring = wiring

    def wire(self, run, x):
        return self.wiring(run, x)


@pytest.mark.parametrize(
    ("wiring", "error", "message"),
    [
        (lambda run, x: run("a", run("a", x)), ValueError, "'a' was run twice"),
        (lambda run, x: run("a", x), ValueError, r"never ran \['b'\]"),
        (lambda run, x: run("c", x), KeyError, r"no child 'c'; the children are \['a', 'b'\]"),
    ],
)
def test_a_wire_runs_each_child_exactly_once(wiring, error, message):
    net = Wired(wiring, a=nnx.relu, b=nnx.relu)
    with pytest.raises(error, match=message):
        net(net.initialize_state(1), jnp.ones((1, 1)))


def test_a_wire_that_drops_the_batch_axis_is_refused_in_a_sequence():
    net = Wired(lambda run, x: run("a", x).sum(0), a=nnx.relu)
    with pytest.raises(ValueError, match="must keep the first axis"):
        net.unroll({"a": ()}, jnp.ones((2, 3, 4)), jnp.zeros((2, 3), bool))


@pytest.mark.parametrize("kind", [Concat, Map])
def test_a_missing_key_names_the_child_and_the_keys(kind):
    net = kind(a=nnx.relu, b=nnx.relu)
    with pytest.raises(KeyError, match=r"no input for child 'b'.*\['a', 'b'\]; got \['a', 'c'\]"):
        net(net.initialize_state(1), {"a": jnp.ones((1, 1)), "c": jnp.ones((1, 1))})


def test_merge_refuses_what_is_no_dict_and_keys_given_twice():
    net = Merge(a=nnx.relu)
    with pytest.raises(TypeError, match="child 'a' must give a dict"):
        net({"a": ()}, jnp.ones((1, 1)))
    net = Merge(a=lambda x: {"k": x}, b=lambda x: {"k": x})
    with pytest.raises(ValueError, match="'k' comes from both 'a' and 'b'"):
        net({"a": (), "b": ()}, jnp.ones((1, 1)))


def test_concat_refuses_an_output_without_feature_axis():
    with pytest.raises(ValueError, match="child 'a' must give"):
        Concat(a=lambda x: x[:, 0])({"a": ()}, {"a": jnp.ones((2, 1))})


def test_a_carry_of_another_network_is_refused():  # F34
    with pytest.raises(ValueError, match=r"an entry for each of \['relu_0', 'relu_1'\]; got 1 entries"):
        Sequential([nnx.relu, nnx.relu])([()], jnp.ones((1, 1)))
    with pytest.raises(ValueError, match=r"entry for each of \['a'\]; got \['b'\]"):
        Parallel(a=nnx.relu)({"b": ()}, jnp.ones((1, 1)))


def test_sizes_that_do_not_match_name_both_layers_and_both_sizes():
    with pytest.raises(SizeError, match="dense_1: takes 5 features on the last axis; dense_0 gives 4"):
        Sequential([dense(3, 4), dense(5, 1)])
    net = Sequential([dense(3, 4), nnx.relu, Parallel(left=dense(5, 1), right=dense(4, 1))])
    for call in (
        lambda: net(net.initialize_state(1), jnp.ones((1, 3))),
        lambda: net.unroll(net.initialize_state(1), jnp.ones((2, 1, 3)), jnp.zeros((2, 1), bool)),
    ):
        with pytest.raises(SizeError, match=r"parallel_2/left \(Dense\): takes 5 .*; relu_1 gives 4"):
            call()


@pytest.mark.parametrize("layer", [[nnx.relu], {"a": nnx.relu}, 3])
def test_what_is_no_layer_is_refused_with_a_hint(layer):  # pitfall 36
    with pytest.raises(TypeError, match=r"got \w+. Wrap lists of layers in Sequential"):
        Sequential([layer])


def test_a_plain_layer_behind_a_function_is_told_both_sizes_and_who_gives_them_in_a_step_and_a_sequence():
    rngs = nnx.Rngs(0)
    linear, conv = nnx.Linear(3, 2, rngs=rngs), nnx.Conv(3, 2, (2, 2), rngs=rngs)
    for name, layer, x in (("Linear", linear, jnp.zeros((5, 4))), ("Conv", conv, jnp.zeros((5, 6, 6, 4)))):
        net = Sequential([nnx.relu, layer])
        state = net.initialize_state(5)
        match = rf"{name.lower()}_1 \({name}\): takes 3 features on the last axis; relu_0 gives 4"
        with pytest.raises(SizeError, match=match):
            net(state, x)
        with pytest.raises(SizeError, match=match):
            net.unroll(state, x[None], jnp.zeros((1, 5), bool))
