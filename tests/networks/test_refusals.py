"""What layers cannot be made of: each error names the layer and the parameter, and says what came."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import (
    GRU,
    LRU,
    LSTM,
    Conv,
    Dense,
    Normalizer,
    NormalTanhSampler,
    PopulationGraph,
    VariationalBottleneck,
    make_mlp,
    make_mlp_actor_critic,
)

from . import refusals

RNGS = nnx.Rngs(0)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcomes():
    """Type and message of the error by case, from a process in which no type checker refuses the arguments first."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.networks.refusals"], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def errors(outcomes):
    """Those of what must be refused."""
    return outcomes["refused"]


def assert_named(errors, group, kinds):
    """Each case of the group is refused with one of ``kinds``, by a message with both names and what came."""
    cases = {case: error for case, error in errors.items() if case.split(" ")[0] in group}
    assert len(cases) >= 3 * len(group)
    for case, error in cases.items():
        name, _, came = case.partition(" ")
        who, parameter = name.split(".")
        assert error is not None, case
        kind, message = error
        assert kind in kinds, (case, error)
        assert message.removeprefix('"').startswith(f"{who}: ") and parameter in message and came in message, (
            case,
            message,
        )


def test_sizes_that_are_no_positive_ints_are_refused_by_layer_and_parameter(errors):
    assert_named(errors, refusals.SIZED, {"ValueError", "TypeError"})


def test_what_gives_no_keys_is_refused_by_layer_and_parameter(errors):
    assert_named(errors, refusals.WITH_RNGS, {"TypeError"})


def test_numbers_without_sense_are_refused_by_layer_and_parameter(errors):
    assert_named(errors, refusals.NUMBERS | refusals.FINITE, {"ValueError", "TypeError"})


def test_unknown_activations_are_refused_by_layer_and_parameter(errors):
    assert_named(errors, refusals.ACTIVATED, {"KeyError", "TypeError"})
    for name in refusals.ACTIVATED:
        kind, message = errors[f"{name} 'rellu'"]
        assert kind == "KeyError" and "such as 'relu', 'relu6'" in message


def test_names_of_children_that_are_no_strings_are_refused(errors):
    assert_named(errors, {f"{kind}.child" for kind in refusals.KINDS}, {"TypeError"})


@pytest.mark.parametrize(
    ("case", "kind", "message"),
    [
        ("Sequential of a layer", "TypeError", "Sequential: layers must be a list of layers, or a dict; got a Dense."),
        ("Sequential of a text", "TypeError", "Sequential: layers must be a list of layers, or a dict; got a str."),
        (
            "Parallel of a list",
            "TypeError",
            "Parallel: give the children as a dict by name, or as keywords; got a list.",
        ),
        ("a node named 3", "TypeError", "PopulationGraph: the name of a node must be a string; got 3."),
        ("an output named 3", "TypeError", "PopulationGraph: output_to of 'a' must be a string; got 3."),
        ("an input from 3", "TypeError", "PopulationGraph: input_from of 'a' must be a key or a tuple"),
        ("no sizes", "ValueError", "make_mlp: sizes must be 2 or more, from input to output; got []."),
        ("one size", "ValueError", "make_mlp: sizes must be 2 or more, from input to output; got [3]."),
        ("sizes that are an int", "TypeError", "make_mlp: sizes must be a list of ints; got 3."),
        ("an empty normalizer", "ValueError", "Normalizer: shape must have sizes of at least 1, one or more; got {}."),
        ("Flattener of NaN", "TypeError", "Flattener: preserve_levels must be an int; got nan."),
        ("Delay of ints from NaN", "TypeError", "Delay: the initial value nan does not fit into int32."),
        ("a negative batch", "ValueError", "LSTM: batch_size must be at least 0; got -1."),
        ("a batch of 2.0", "TypeError", "Sequential: batch_size must be an int; got 2.0."),
        ("a batch of None", "TypeError", "GRU: batch_size must be an int; got None."),
    ],
)
def test_other_arguments_are_refused_with_what_is_wanted(errors, case, kind, message):
    assert errors[case][0] == kind and errors[case][1].startswith(message)


def test_every_case_is_refused(errors):
    assert not [case for case, error in errors.items() if error is None]


def test_radii_of_a_linear_recurrence_are_ordered_and_leave_it_stable():
    for radii, message in (
        ({"r_min": 0.9, "r_max": 0.5}, r"r_min must be in \[0, 0.5\]; got 0.9"),
        ({"r_max": 1.5}, r"r_max must be in \[0, 1\]; got 1.5"),
        ({"r_max": 0.0}, "r_max must be above 0"),
        ({"r_min": 1.0}, "r_min below 1"),
    ):
        with pytest.raises(ValueError, match=message):
            LRU(2, 2, RNGS, **radii)
    decay = LRU(2, 50, RNGS, r_min=0.5, r_max=0.5, max_phase=7.0).decay()
    np.testing.assert_allclose(jnp.abs(decay), 0.5, rtol=1e-5)


@pytest.mark.parametrize("name", ["relu", "tanh", "silu", "swish", "gelu"])
def test_the_name_of_an_activation_stands_for_the_function_of_jax_everywhere(name):
    function, x = getattr(jax.nn, name), jnp.linspace(-2.0, 2.0, 6).reshape(2, 3)

    def output(net, x):
        return net(net.initialize_state(2), x).output

    def graph(activation):
        net = PopulationGraph(nnx.Rngs(1))
        net.add_input("a", 3, activation=activation)
        net.add_output("b", 3, activation=activation)
        net.connect("a", "b")
        net.finalize()
        return output(net, x)["b"]

    for make in (
        lambda f: output(Dense(3, 2, nnx.Rngs(1), f), x),
        lambda f: output(Conv(3, 2, 1, nnx.Rngs(1), f), x[:, None, None]),
        lambda f: output(LSTM(3, 2, nnx.Rngs(1), gate_fn=f, activation_fn=f), x),
        lambda f: output(GRU(3, 2, nnx.Rngs(1), gate_fn=f, activation_fn=f), x),
        lambda f: output(make_mlp([3, 4, 2], nnx.Rngs(1), f), x),
        lambda f: output(make_mlp_actor_critic(3, 2, [4], [4], nnx.Rngs(1), f), x).value_estimates,
        graph,
    ):
        np.testing.assert_array_equal(make(name), make(function))


def test_sizes_may_be_numpys_ints(outcomes):
    assert outcomes["taken"] == dict.fromkeys(refusals.SIZED)


def test_numbers_may_be_arrays_and_variables_and_a_shape_empty():
    assert Normalizer(np.int64(3)).shapes == ((3,),) and Normalizer((np.int64(3), 2)).shapes == ((3, 2),)
    assert Normalizer(()).shapes == ((),) and Normalizer(2, clip=float("inf")).clip == float("inf")
    weight = nnx.Variable(jnp.array(0.5))
    assert NormalTanhSampler(RNGS, weight).entropy_weight is weight
    assert VariationalBottleneck(2, RNGS, 0.5).kl_weight == 0.5
