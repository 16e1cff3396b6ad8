"""Recording: outputs untouched, activations by path, no trace in the original."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import (
    LSTM,
    Dense,
    Normalizer,
    NormalTanhSampler,
    Parallel,
    PopulationGraph,
    PPOAdapter,
    Recorder,
    Sequential,
    StatefulModule,
    StatefulModuleOutput,
    VariationalBottleneck,
    extract_activations,
    with_recording,
)

from .laws import BATCH, TIME, Pure, assert_trees_close, assert_unroll_equals_stepping, normals, random_resets


def graph():
    g = PopulationGraph(nnx.Rngs(1))
    g.add_input("in", 4, input_from="x")
    g.add_output("out", 2, activation=nnx.tanh)
    g.connect("in", "out", delay=1)
    g.finalize()
    return Sequential([lambda x: {"x": x}, g, lambda d: d["out"]])


def network():
    rngs = nnx.Rngs(0)
    trunk = Sequential({"in": Dense(3, 4, rngs, nnx.relu), "memory": LSTM(4, 4, rngs)})
    actor = Sequential(
        [Dense(4, 4, rngs), VariationalBottleneck(2, rngs), Dense(2, 4, rngs), NormalTanhSampler(rngs, 0.1)]
    )
    return Sequential([Normalizer(3), trunk, PPOAdapter(actor, Parallel(a=Dense(4, 1, rngs), b=graph()))])


def test_outputs_and_carries_are_those_of_the_original():
    net = network()
    recording = with_recording(net)
    xs, resets = normals(0, TIME, BATCH, 3), random_resets(0)
    pure, recorded = Pure(net), Pure(recording)
    state = pure.initialize_state(BATCH)
    want, got = pure.unroll(state, xs, resets), recorded.unroll(state, xs, resets)
    for field in ("output", "next_state", "rollout_extras", "regularization_loss"):
        assert_trees_close(getattr(got, field), getattr(want, field))
    assert_unroll_equals_stepping(recorded, xs, resets)


def test_activations_are_found_by_the_path_of_the_layer():
    net = network()
    x, state = normals(0, BATCH, 3), net.initialize_state(BATCH)
    recorded = extract_activations(with_recording(net)(state, x).metrics)
    assert set(recorded) == {"normalizer_0", "sequential_1", "ppo_adapter_2"}
    first = net.children["normalizer_0"]((), x).output
    np.testing.assert_array_equal(recorded["normalizer_0"], first)
    trunk = net.layers[1]
    np.testing.assert_allclose(recorded["sequential_1"]["memory"], trunk(state[1], first).output, rtol=1e-6)
    ports = recorded["ppo_adapter_2"]
    assert set(ports["action"]["normal_tanh_sampler_3"]) == {"action", "log_likelihood"}
    in_graph = ports["value"]["b"]["population_graph_1"]
    assert set(in_graph) == {"in", "out"} and in_graph["in"].shape == (BATCH, 4)


def test_the_original_keeps_its_structure_and_shares_its_parameters():
    net = network()
    before = nnx.split(net)[0]
    recording = with_recording(net)
    assert nnx.split(net)[0] == before
    kernel = net.layers[1].children["in"].linear.kernel  # pyright: ignore
    kernel[...] = kernel[...] * 0
    copied = recording.layers[1].children["in"].wrapped.linear.kernel  # pyright: ignore
    assert copied is kernel


def test_running_the_copy_draws_nothing_from_the_original():  # F17
    net = network()
    before = jax.tree.map(jax.random.key_data, list(jax.tree.leaves(nnx.state(net, nnx.RngKey))))
    counts = [int(c) for c in jax.tree.leaves(nnx.state(net, nnx.RngCount))]
    recording = with_recording(net)
    recording(recording.initialize_state(2), normals(0, 2, 3))
    assert [int(c) for c in jax.tree.leaves(nnx.state(net, nnx.RngCount))] == counts
    after = jax.tree.map(jax.random.key_data, list(jax.tree.leaves(nnx.state(net, nnx.RngKey))))
    jax.tree.map(np.testing.assert_array_equal, after, before)


def test_a_network_that_records_already_comes_back_with_a_warning():
    recording = with_recording(network())
    with pytest.warns(UserWarning, match="records already"):
        assert with_recording(recording) is recording
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(with_recording(Dense(2, 2, nnx.Rngs(0))), Recorder)


def test_modules_that_hold_modules_in_attributes_are_opened():
    class Twice(StatefulModule):
        def __init__(self):
            self.first, self.rest = Dense(2, 2, nnx.Rngs(0)), nnx.List([Dense(2, 2, nnx.Rngs(1))])

        def __call__(self, state, x, rollout_extras=None):
            a = self.first((), x)
            b = self.rest[0]((), a.output)
            return StatefulModuleOutput((), b.output, 0.0, {"a": a.metrics, "b": b.metrics})

    found = extract_activations(with_recording(Twice())((), jnp.ones((1, 2))).metrics)
    assert set(found) == {"a", "b"}


def test_nothing_recorded_is_none():
    net = Parallel(a=nnx.relu)
    assert extract_activations(net({"a": ()}, jnp.ones((1, 1))).metrics) is None
    assert extract_activations({"a": {"kl": 3}, "b": {}}) is None


def test_statistics_reach_the_module_inside():
    net = Normalizer(1)
    recorder = with_recording(net)
    recorder.update_statistics(jnp.ones((2, 2, 1)))
    assert net.counter == 4
