"""What a call of a module checks, and what its errors say."""

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from triax.networks import (
    LSTM,
    Container,
    Dense,
    Normalizer,
    Parallel,
    PopulationGraph,
    Sequential,
    StatefulModule,
    StatefulModuleOutput,
    VariationalBottleneck,
    with_recording,
)

RNGS = nnx.Rngs(0)


class Bare(StatefulModule):
    """Puts out the array alone."""

    def __call__(self, state, x, rollout_extras=None):
        return x


class Remembers(StatefulModule):
    """A module of a user's own, with a carry of which a function makes the next one."""

    def __init__(self, following):
        self.following = following

    def __call__(self, state, x, rollout_extras=None):
        return StatefulModuleOutput(self.following(state), x, 0.0, {})

    def initialize_state(self, batch_size):
        return {"h": jnp.zeros((batch_size, 2)), "n": jnp.zeros(batch_size, jnp.int32)}

    def reset_state(self, prev_state):
        return jax.tree.map(jnp.zeros_like, prev_state)


CALLS = {
    "alone": lambda layer: layer,
    "in a container": lambda layer: Sequential([nnx.relu, Parallel(part=layer)]),
    "recorded": lambda layer: with_recording(Sequential([layer])),
}


def call(net, batch=3):
    return net(net.initialize_state(batch), jnp.ones((batch, 2)))


@pytest.mark.parametrize("place", CALLS.values(), ids=list(CALLS))
def test_a_call_that_returns_something_else_is_refused_where_it_is_made(place):
    with pytest.raises(TypeError, match="Bare: a call must return a StatefulModuleOutput; got ArrayImpl"):
        call(place(Bare()))


@pytest.mark.parametrize("place", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize(
    ("following", "message"),
    [
        (lambda s: {**s, "h": s["h"][:1]}, r"expected float32\[3,2\], got float32\[1,2\]"),
        (lambda s: {**s, "n": s["n"] + 0.5}, r"expected int32\[3\], got float32\[3\]"),
        (lambda s: {"h": s["h"]}, r"missing, expected int32\[3\]"),
        (lambda s: (), r"missing, expected float32\[3,2\]"),
    ],
    ids=["shape", "dtype", "tree", "nothing"],
)
def test_a_carry_that_does_not_stay_as_it_was_is_refused_in_a_call(place, following, message):
    with pytest.raises(ValueError, match=rf"Remembers: next_state must have the tree(.|\n)*{message}"):
        call(place(Remembers(following)))


@pytest.mark.parametrize("place", CALLS.values(), ids=list(CALLS))
def test_a_loss_that_is_not_one_number_an_environment_is_refused(place):
    class Columns(Remembers):
        def __call__(self, state, x, rollout_extras=None):
            return StatefulModuleOutput(state, x, (x**2).mean(axis=-1, keepdims=True), {})

    with pytest.raises(ValueError, match=r"Columns: regularization_loss must be a number or \[batch\].*shape \[3, 1\]"):
        call(place(Columns(lambda state: state)))


def test_a_carry_may_come_as_another_kind_of_sequence():
    net = Sequential([LSTM(2, 3, RNGS)])
    h = jnp.zeros((1, 3))
    for state in ([(h, h)], ([h, h],)):
        assert net(state, jnp.ones((1, 2))).output.shape == (1, 3)
    assert Dense(2, 3, RNGS)(None, jnp.ones((1, 2))).next_state == ()


def test_a_state_may_come_as_a_keyword():
    net = Remembers(lambda state: {**state, "n": state["n"] + 0.5})
    with pytest.raises(ValueError, match="Remembers: next_state must have"):
        net(x=jnp.ones((3, 2)), state=net.initialize_state(3))


def test_the_check_adds_nothing_to_what_is_computed():
    net = VariationalBottleneck(2, RNGS)
    inputs = net.initialize_state(2), jnp.ones((2, 4))
    unchecked = type(net).__call__.__wrapped__
    assert str(jax.make_jaxpr(net)(*inputs)) == str(jax.make_jaxpr(lambda s, x: unchecked(net, s, x))(*inputs))


def test_an_error_inside_of_a_network_says_where():
    def broken(x):
        raise ZeroDivisionError("on purpose")

    graph = PopulationGraph(RNGS)
    graph.add_output("out", 2, input_from=())
    graph.add_output("more", 2)
    graph.connect("out", "more", transform=Parallel(inner=broken))
    graph.finalize()
    with pytest.raises(ZeroDivisionError) as caught:
        call(Sequential({"first": nnx.relu, "body": graph}))
    assert caught.value.__notes__ == [
        "In 'inner' of Parallel.",
        "In 'out->more' of PopulationGraph.",
        "In 'body' of Sequential, which got [3, 2] from 'first'.",
    ]


class NoReturn(Container):
    def wire(self, run, x):
        run("inner", x)


@pytest.mark.parametrize("place", CALLS.values(), ids=list(CALLS))
def test_a_wire_without_return_is_refused_by_the_name_of_its_container(place):
    net = place(NoReturn(inner=LSTM(2, 2, RNGS)))
    with pytest.raises(TypeError, match=r"NoReturn: wire gave None\. Is its return missing\?"):
        call(net)
    with pytest.raises(TypeError, match="NoReturn: wire gave None"):
        net.unroll(net.initialize_state(3), jnp.ones((4, 3, 2)), jnp.zeros((4, 3), bool))


def test_a_wire_that_loses_the_batch_is_refused_by_the_name_of_its_container():
    class Mean(Container):
        def wire(self, run, x):
            return run("inner", x).mean(axis=0)

    net = Mean(inner=LSTM(2, 2, RNGS))
    with pytest.raises(ValueError, match=r"Mean: in wire, .* \[batch, ...\] with batch = 12 here .*; got shape \[2\]"):
        net.unroll(net.initialize_state(3), jnp.ones((4, 3, 2)), jnp.zeros((4, 3), bool))


@pytest.mark.parametrize("place", CALLS.values(), ids=list(CALLS))
def test_a_sequence_of_a_module_that_returns_something_else_is_refused_by_its_name(place):
    net = place(Bare())
    with pytest.raises(TypeError, match="Bare: a call must return a StatefulModuleOutput; got"):
        net.unroll(net.initialize_state(3), jnp.ones((4, 3, 2)), jnp.zeros((4, 3), bool))


@pytest.mark.parametrize(
    ("reset", "message"),
    [
        (lambda s: s["h"], r"not expected, got float32\[3,2\]"),
        (lambda s: None, r"missing, expected float32\[3,2\]"),
        (lambda s: {**s, "h": s["h"][0]}, r"expected float32\[3,2\], got float32\[2\]"),
        (lambda s: {**s, "n": s["n"] * 1.0}, r"expected int32\[3\], got float32\[3\]"),
    ],
    ids=["part", "nothing", "shape", "dtype"],
)
def test_a_reset_that_gives_another_carry_is_refused_by_the_name_of_its_module(reset, message):
    class Resets(Remembers):
        def reset_state(self, prev_state):
            return reset(prev_state)

    net = Resets(lambda state: state)
    state = net.initialize_state(3)
    error = rf"Resets.reset_state: what it gives must have the tree(.|\n)*{message}"
    with pytest.raises(ValueError, match=error):
        net.reset_state(state)
    with pytest.raises(ValueError, match=error):
        net.unroll(state, jnp.ones((4, 3, 2)), jnp.zeros((4, 3), bool))


def test_an_error_in_a_reset_says_of_which_carry():
    class Misspelt(Remembers):
        def reset_state(self, prev_state):
            return {"h": prev_state["hh"]}

    with pytest.raises(KeyError, match="hh") as caught:
        Misspelt(lambda state: state).reset_state({"h": jnp.ones(2), "n": jnp.ones(())})
    assert caught.value.__notes__ == ["In Misspelt.reset_state, of the carry {'h': array, 'n': array}."]


class Forgetful(Container):
    def __init__(self, inner):
        self.inner = inner

    def wire(self, run, x):
        return run("inner", x)


@pytest.mark.parametrize(
    "use",
    [
        lambda net: net.initialize_state(1),
        lambda net: net({"inner": ()}, jnp.ones((1, 2))),
        lambda net: net.reset_state({"inner": ()}),
        lambda net: net.unroll({"inner": ()}, jnp.ones((1, 1, 2)), jnp.zeros((1, 1), bool)),
        lambda net: net.update_statistics({"inner": None}),
        lambda net: net.children,
        lambda net: Sequential([net]).initialize_state(1),
    ],
)
def test_a_container_that_did_not_call_super_init_is_told_so(use):
    with pytest.raises(AttributeError, match=r"Forgetful: no children yet; a container's __init__ must call super"):
        use(Forgetful(Dense(2, 2, RNGS)))


def test_a_container_has_no_other_attributes_made_up():
    net = Forgetful(Dense(2, 2, RNGS))
    assert not hasattr(net, "anything") and not hasattr(net, "names")
    assert str(net).startswith("Forgetful(6 parameters")


class Composite(StatefulModule):
    """Hands its call to the layer inside, and forgets that statistics are learned too."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, state, x, rollout_extras=None):
        return self.inner(state, x, rollout_extras)

    def initialize_state(self, batch_size):
        return self.inner.initialize_state(batch_size)

    def reset_state(self, prev_state):
        return self.inner.reset_state(prev_state)


@pytest.mark.parametrize("place", [Composite(Normalizer(2)), Sequential([Composite(Sequential([Normalizer(2)]))])])
def test_statistics_that_nobody_passes_on_are_refused_when_they_should_be_learned(place):  # F36
    out = call(place)
    extras = jax.tree.map(lambda leaf: leaf[None], out.rollout_extras)
    with pytest.raises(TypeError, match=r"Composite: 'inner.*' learns statistics.*Write update_statistics"):
        place.update_statistics(extras)


def test_a_composite_without_statistics_inside_has_none_to_learn():
    place = Sequential([Composite(Sequential([Dense(2, 2, RNGS)]))])
    place.update_statistics(call(place).rollout_extras)
