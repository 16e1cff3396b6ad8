"""Inputs and carries that do not fit: each error names the layer, what it takes and what came."""

import functools

import gymnasium as gym
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import (
    GRU,
    LRU,
    LSTM,
    AR1VariationalBottleneck,
    Conv,
    Delay,
    Dense,
    DistributionSampler,
    Flattener,
    FrameStack,
    HaikuLayer,
    MinGRU,
    Normalizer,
    NormalTanhSampler,
    PopulationGraph,
    Sequential,
    SlidingWindowAttention,
    Splitter,
    Stochastic,
    VariationalBottleneck,
    reset_where,
)

RNGS = nnx.Rngs(0)


def graph():
    graph = PopulationGraph(RNGS)
    graph.add_input("z", 4)
    graph.add_output("a", 2)
    graph.connect("z", "a", delay=2)
    graph.finalize()
    return graph


WITHOUT_MEMORY = {
    Dense: lambda: Dense(4, 2, RNGS),
    Conv: lambda: Conv(4, 2, 1, RNGS),
    Splitter: lambda: Splitter(a=1, b=3),
    NormalTanhSampler: lambda: NormalTanhSampler(RNGS, 0.0),
    Flattener: Flattener,
    Normalizer: lambda: Normalizer(4),
}
WITH_MEMORY = {
    LSTM: lambda: LSTM(4, 3, RNGS),
    GRU: lambda: GRU(4, 3, RNGS),
    LRU: lambda: LRU(4, 3, RNGS),
    MinGRU: lambda: MinGRU(4, 3, RNGS),
    SlidingWindowAttention: lambda: SlidingWindowAttention(4, RNGS, window=2, num_heads=1),
    VariationalBottleneck: lambda: VariationalBottleneck(2, RNGS),
    AR1VariationalBottleneck: lambda: AR1VariationalBottleneck(2, RNGS),
    Delay: lambda: Delay(jnp.zeros(4), 2),
    FrameStack: lambda: FrameStack(jnp.zeros(4), 3),
    Stochastic: lambda: Stochastic(nnx.Dropout(0.5, rngs=RNGS)),
    PopulationGraph: graph,
}
LAYERS = {kind.__name__: functools.cache(make) for kind, make in (WITHOUT_MEMORY | WITH_MEMORY).items()}
MEMORIES = {kind.__name__: LAYERS[kind.__name__] for kind in WITH_MEMORY}


@pytest.mark.parametrize("name", list(LAYERS))
def test_nothing_is_refused_by_the_layer_that_gets_it(name):
    net = LAYERS[name]()
    state = net.initialize_state(2)
    layer = "Dropout" if name == "Stochastic" else name
    for nothing in (None, {}):
        with pytest.raises((TypeError, ValueError), match=f"{layer}: .*; got "):
            net(state, nothing)


@pytest.mark.parametrize("name", [n for n in LAYERS if n not in ("Flattener", "Stochastic")])
def test_a_dict_is_refused_by_layers_that_take_one_array(name):
    net = LAYERS[name]()
    with pytest.raises((TypeError, ValueError), match=rf"{name}: .*; got .*\W'?x'?\W"):
        net(net.initialize_state(2), {"x": jnp.ones((2, 4))})


def test_the_message_for_a_tree_says_what_it_is_and_what_helps():
    with pytest.raises(
        TypeError, match=r"Dense: takes one array \[batch, 4\]; got a dict with the keys \['x'\]. A Fil"
    ):
        Dense(4, 2, RNGS)((), {"x": jnp.ones((2, 4))})
    with pytest.raises(TypeError, match=r"got None"):
        Dense(4, 2, RNGS)((), None)
    with pytest.raises(ValueError, match=r"Dense: takes an array \[batch, 4\]; got a number, without any axis"):
        Dense(4, 2, RNGS)((), 1.0)
    with pytest.raises(TypeError, match=r"Dense: takes one array \[batch, 4\]; got a tuple"):
        Dense(4, 2, RNGS)(jnp.ones((1, 4)), ())  # state and input the wrong way round
    assert Dense(4, 2, RNGS)((), [[1.0, 2.0, 3.0, 4.0]]).output.shape == (1, 2)


@pytest.mark.parametrize("name", list(MEMORIES))
def test_a_carry_of_another_batch_is_refused_in_a_single_step(name):
    net = MEMORIES[name]()
    for batch, carried in ((3, 2), (1, 3), (3, 1)):  # a batch of one would be broadcast
        with pytest.raises(
            ValueError, match=rf"{name}: the carry.* the batch \[{batch}\].*initialize_state\({batch}\)"
        ):
            net(net.initialize_state(carried), jnp.ones((batch, 4)))


@pytest.mark.parametrize("name", list(MEMORIES))
def test_what_is_no_carry_of_the_layer_is_refused_in_a_step_and_in_a_sequence(name):
    net, message = MEMORIES[name](), f"{name}: the carry must be like that of initialize_state"
    with pytest.raises(ValueError, match=message):
        net((), jnp.ones((2, 4)))
    with pytest.raises(ValueError, match=message):
        net.unroll((), jnp.ones((3, 2, 4)), jnp.zeros((3, 2), bool))


@pytest.mark.parametrize("name", list(MEMORIES))
def test_what_is_no_carry_of_the_layer_is_refused_by_its_reset(name):
    net = MEMORIES[name]()
    first = jax.tree.leaves(net.initialize_state(2))[0]
    for wrong in ((), {}, [first] * 5, {"c": first, "x": {"y": first}, "z": first, "a": first}):
        with pytest.raises(ValueError, match=rf"{name}(.reset_state)?: .*"):
            net.reset_state(wrong)
    jax.eval_shape(net.reset_state, net.initialize_state(2))
    jax.eval_shape(net.reset_state, jax.tree.map(lambda leaf: leaf[0], net.initialize_state(2)))


@pytest.mark.parametrize("name", [name for name in MEMORIES if name != "Stochastic"])
def test_a_sequence_with_an_axis_too_many_is_refused(name):
    net = MEMORIES[name]()
    with pytest.raises(ValueError, match=rf"{name}: .*2, 5"):
        net.unroll(net.initialize_state(2), jnp.ones((3, 2, 5, 4)), jnp.zeros((3, 2), bool))


@pytest.mark.parametrize("name", [*MEMORIES, "Normalizer", "Conv"])
def test_a_missing_batch_axis_is_refused(name):
    net = LAYERS[name]()
    with pytest.raises(ValueError, match=f"{name}: "):
        net(net.initialize_state(1), jnp.ones(4))


@pytest.mark.parametrize(("carried", "done"), [(3, 1), (1, 2), (2, 3)])
def test_flags_of_another_batch_reset_nothing(carried, done):
    net = LAYERS["LSTM"]()
    with pytest.raises(ValueError, match=rf"done must be \[batch\] .*; got the shape \[{done}\], .*\[{carried}, 3\]"):
        reset_where(net, net.initialize_state(carried), jnp.ones(done, bool))


def test_the_message_for_a_missing_batch_axis_says_how_to_add_it():
    net = LSTM(4, 3, RNGS)
    with pytest.raises(ValueError, match=r"the batch \[\] it must be \[3\]. Is the batch axis of the input missing\?"):
        net(net.initialize_state(1), jnp.ones(4))
    state = jax.tree.map(lambda leaf: leaf[0], net.initialize_state(1))
    assert net(state, jnp.ones(4)).output.shape == (3,)  # one environment, without batch axis on either


def test_flattener_flattens_a_batch_of_none():
    assert Flattener()((), {"a": jnp.ones((0, 2, 3)), "b": jnp.ones(0)}).output.shape == (0, 7)


def test_flattener_refuses_batches_that_differ_and_numbers():
    with pytest.raises(
        ValueError, match=r"Flattener: all arrays must be .* one batch; got the shapes \[\[2, 1\], \[3\]\]"
    ):
        Flattener()((), [jnp.ones((2, 1)), jnp.ones(3)])
    with pytest.raises(ValueError, match=r"Flattener: all arrays must be .*; got the shapes \[\[2\], \[\]\]"):
        Flattener()((), [jnp.ones(2), 1.0])
    with pytest.raises(ValueError, match=r"Flattener: takes a tree of arrays .*; got \{\}, without an array"):
        Flattener(1)((), {"a": {}})


def test_conv_refuses_what_is_no_image():
    with pytest.raises(ValueError, match=r"Conv: takes images \[batch, size, size, 4\], .*; got shape \[2, 4\]"):
        Conv(4, 2, 3, RNGS)((), jnp.ones((2, 4)))


def test_a_sampler_names_itself_for_a_number():
    with pytest.raises(ValueError, match=r"DistributionSampler: takes an array \[batch, 3\]; got a number"):
        DistributionSampler(gym.spaces.Discrete(3), RNGS)((), np.float32(1))


def test_a_sample_of_another_batch_is_refused_in_a_replay():
    sampler, params = NormalTanhSampler(RNGS, 0.0), jnp.ones((2, 4))
    with pytest.raises(ValueError, match=r"rollout_extras are the sample of .* rollout, \[2, 2\]; got \[1, 2\]"):
        sampler((), params, jnp.ones((1, 2)))  # would be broadcast
    with pytest.raises(
        ValueError, match=r"NormalTanhSampler.unroll: rollout_extras must start with \[time, batch\] = \[1, 2\]"
    ):
        sampler.unroll((), params[None], jnp.zeros((1, 2), bool), jnp.ones((1, 3, 2)))


@pytest.mark.parametrize(
    ("function", "where"),
    [(lambda x: x.sum(), ""), (lambda x: {"a": x, "b": 1.0}, r" at \['b'\]"), (lambda x: jnp.squeeze(x[:1, :1]), "")],
)
def test_a_function_that_loses_all_axes_is_refused(function, where):
    net = Sequential([nnx.relu, function])
    with pytest.raises(ValueError, match=rf"<lambda>: must give arrays \[batch, ...\]; got a number{where}, without"):
        net(net.initialize_state(2), jnp.ones((2, 4)))


def haiku_torso(x):
    return hk.Linear(4)(x)


@pytest.mark.parametrize(
    "function",
    [
        haiku_torso,
        lambda x: x * hk.get_parameter("w", (), init=jnp.ones),
        lambda x: hk.dropout(hk.next_rng_key(), 0.5, x),
    ],
    ids=["module", "parameter", "noise"],
)
def test_a_bare_haiku_style_function_is_pointed_to_haiku_layer(function):
    net = Sequential([function])
    with pytest.raises(TypeError, match=r"made of Haiku's modules, .* Put triax.networks.HaikuLayer"):
        net(net.initialize_state(2), jnp.ones((2, 4)))
    net = Sequential([HaikuLayer(function, jnp.zeros(4), RNGS)])
    assert net(net.initialize_state(2), jnp.ones((2, 4))).output.shape == (2, 4)
