"""Modules and functions that are not of triax: what they say of sizes, what they leave behind in sequences."""

import functools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import HaikuLayer, PopulationGraph, Sequential, SizeError, StatefulModule, StatefulModuleOutput

from .laws import BATCH, TIME, Pure, assert_trees_close, assert_unroll_equals_stepping, normals

RNGS = nnx.Rngs(0)
WEIGHT = jnp.ones((4, 3))
NO_RESETS = jnp.zeros((TIME, BATCH), bool)


class Net(nnx.Module):
    """A user's, which declares no size."""

    def __init__(self):
        self.first, self.second = nnx.Linear(4, 7, rngs=RNGS), nnx.Linear(7, 2, rngs=RNGS)

    def __call__(self, x):
        return self.second(nnx.relu(self.first(x)))


def torso(x):
    return hk.nets.MLP([8, 3])(x)


def with_mode(x, is_training):
    return x @ WEIGHT


TAKE_FOUR = {
    "HaikuLayer": lambda: HaikuLayer(torso, jnp.zeros(4), RNGS),
    "Net": Net,
    "Linear": lambda: nnx.Linear(4, 2, rngs=RNGS),
    "LinearGeneral": lambda: nnx.LinearGeneral(4, 2, rngs=RNGS),
    "MultiHeadAttention": lambda: nnx.MultiHeadAttention(2, 4, rngs=RNGS, decode=False),
    "LayerNorm": lambda: nnx.LayerNorm(4, rngs=RNGS),
    "RMSNorm": lambda: nnx.RMSNorm(4, rngs=RNGS),
    "BatchNorm": lambda: nnx.BatchNorm(4, rngs=RNGS),
    "WeightNorm": lambda: nnx.WeightNorm(nnx.Linear(4, 2, rngs=RNGS), rngs=RNGS),
    "with_mode": lambda: with_mode,
    "<lambda>": lambda: lambda x: x @ WEIGHT,
    "partial": lambda: functools.partial(jnp.matmul, b=WEIGHT),
}


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("name", list(TAKE_FOUR))
def test_another_width_is_refused_with_both_sizes_and_both_names(name, size):
    net = Sequential({"giver": lambda x: x[..., :1].repeat(size, -1), "taker": TAKE_FOUR[name]()})
    state, message = (
        net.initialize_state(2),
        rf"taker \({name}\): takes 4 features on the last axis; giver gives {size}\.",
    )
    with pytest.raises(SizeError, match=message):
        net(state, jnp.ones((2, 3)))
    with pytest.raises(SizeError, match=message):
        net.unroll(state, jnp.ones((4, 2, 3)), jnp.zeros((4, 2), bool))
    with pytest.raises(SizeError, match=message):
        jax.jit(lambda x: nnx.merge(*nnx.split(net), copy=True)(state, x).output)(jnp.ones((2, 3)))


@pytest.mark.parametrize("name", list(TAKE_FOUR))
def test_the_right_width_is_taken(name):
    net = Sequential({"giver": nnx.relu, "taker": TAKE_FOUR[name]()})
    assert net(net.initialize_state(2), normals(0, 2, 4)).output.shape[0] == 2


def test_where_no_size_can_be_told_the_error_says_what_came_from_whom():
    net = Sequential({"giver": nnx.relu, "taker": lambda x: x.reshape(-1, 2, 2)})
    with pytest.raises(TypeError, match="cannot reshape") as caught:
        net(net.initialize_state(2), jnp.ones((2, 5)))
    assert caught.value.__notes__ == ["In 'taker' of Sequential, which got [2, 5] from 'giver'."]


def test_other_errors_of_a_layer_are_left_as_they_are():
    def broken(x):
        raise ValueError("on purpose")

    for layer in (broken, functools.partial(broken)):
        with pytest.raises(ValueError, match=r"^on purpose"):
            Sequential([layer])([()], jnp.ones((2, 5)))


@pytest.mark.parametrize(
    ("layer", "instead"),
    [
        (nnx.LSTMCell(3, 3, rngs=RNGS), "LSTM"),
        (nnx.OptimizedLSTMCell(3, 3, rngs=RNGS), "LSTM"),
        (nnx.GRUCell(3, 3, rngs=RNGS), "GRU"),
        (nnx.SimpleCell(3, 3, rngs=RNGS), "LSTM"),
        (nnx.RNN(nnx.GRUCell(3, 3, rngs=RNGS)), "LSTM"),  # would take the batch for time
        (nnx.Bidirectional(*(nnx.RNN(nnx.GRUCell(3, 3, rngs=RNGS)) for _ in range(2))), "LSTM"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_recurrent_cells_of_flax_are_pointed_to_those_with_a_carry(layer, instead):
    with pytest.raises(TypeError, match=rf"{type(layer).__name__} takes .*Put triax.networks.{instead}\(") as caught:
        Sequential([nnx.relu, layer])
    assert caught.value.__notes__[0].endswith("of Sequential.")


def linear():
    return nnx.Linear(3, 3, rngs=nnx.Rngs(1))


class Scaled(StatefulModule):
    """Has a carry, and a layer inside that writes its parameters."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, state, x, rollout_extras=None):
        y = nnx.tanh(self.layer(x + state))
        return StatefulModuleOutput(y, y, 0.0, {})

    def initialize_state(self, batch_size):
        return jnp.zeros((batch_size, 3))

    def reset_state(self, prev_state):
        return jnp.zeros_like(prev_state)


WRITERS = {
    "WeightNorm": lambda: nnx.WeightNorm(linear(), rngs=nnx.Rngs(0)),
    "SpectralNorm": lambda: nnx.SpectralNorm(linear(), rngs=nnx.Rngs(0)),
    "Dropout": lambda: nnx.Dropout(0.5, rngs=nnx.Rngs(0)),
    "BatchNorm": lambda: nnx.BatchNorm(3, use_running_average=True, rngs=nnx.Rngs(0)),
}


def variables_after(pure, xs, resets, state):
    """What is left behind by a call a step, and by a sequence."""
    variables, carry = pure.variables, state
    for t in range(TIME):
        out, variables = pure.step(variables, carry, xs[t], resets[t], None)
        carry = out.next_state
    return variables, pure.unroll_fn(pure.variables, state, xs, resets, None)[1]


def in_a_loop(layer):
    graph = PopulationGraph(nnx.Rngs(2))
    graph.add_output("z", 3, input_from="x")
    graph.connect("z", "z", delay=1, transform=layer)
    graph.finalize()
    return Sequential([lambda x: {"x": x}, graph, lambda d: d["z"]])


PLACES = {"in a row": lambda layer: Sequential([nnx.tanh, layer]), "with a carry": Scaled, "in a loop": in_a_loop}


@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("name", list(WRITERS))
def test_a_sequence_gives_and_leaves_behind_what_its_steps_do(name, place):
    net = PLACES[place](WRITERS[name]())
    pure, xs, resets = Pure(net), normals(0, TIME, BATCH, 3), NO_RESETS.at[3, 1].set(True)
    assert_unroll_equals_stepping(pure, xs, resets)
    stepped, unrolled = variables_after(pure, xs, resets, pure.initialize_state(BATCH))
    assert_trees_close(jax.tree.leaves(unrolled), jax.tree.leaves(stepped))
    kernels = [leaf for path, leaf in nnx.to_flat_state(stepped) if path[-1] == "kernel"]
    before = [leaf for path, leaf in nnx.to_flat_state(pure.variables) if path[-1] == "kernel"]
    changed = [bool(np.any(a[...] != b[...])) for a, b in zip(before, kernels, strict=True)]
    assert changed == [True] * (name in ("WeightNorm", "SpectralNorm"))


@pytest.mark.parametrize("name", ["WeightNorm", "SpectralNorm"])
def test_gradients_through_normalized_weights_are_those_of_steps(name):
    graphdef, params, rest = nnx.split(Sequential([Scaled(WRITERS[name]())]), nnx.Param, ...)
    xs, state = normals(0, 3, 2, 3), [jnp.zeros((2, 3))]

    def unrolled(params):
        net = nnx.merge(graphdef, params, rest, copy=True)
        return jnp.sum(net.unroll(state, xs, jnp.zeros((3, 2), bool)).output ** 2)

    def stepped(params):
        net, carry, total = nnx.merge(graphdef, params, rest, copy=True), state, 0.0
        for x in xs:
            out = net(carry, x)
            carry, total = out.next_state, total + jnp.sum(out.output**2)
        return total

    got, want = (jax.tree.leaves(jax.jit(jax.grad(loss))(params)) for loss in (unrolled, stepped))
    assert any(np.any(leaf != 0) for leaf in want)
    assert_trees_close(got, want)


def test_parameters_that_no_step_writes_stay_outside_of_the_carry_of_a_scan():
    net, xs = Scaled(linear()), normals(0, TIME, BATCH, 3)
    jaxpr = jax.make_jaxpr(lambda xs: net.unroll(net.initialize_state(BATCH), xs, NO_RESETS).output)(xs)
    (scan,) = [equation for equation in jaxpr.eqns if equation.primitive.name == "scan"]
    assert scan.params["num_carry"] == 1 and scan.params["num_consts"] == 2
