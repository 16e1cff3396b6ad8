"""Delay: a deque per environment is the oracle."""

import re
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import Delay, SizeError

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, reset_patterns


def deque_delay(xs, resets, k, initial):
    """The delayed sequence of each environment, from a Python deque that is refilled at a reset."""
    out = np.empty_like(xs)
    for b in range(xs.shape[1]):
        line = deque([np.full_like(xs[0, b], initial)] * k)
        for t in range(xs.shape[0]):
            if resets[t, b]:
                line = deque([np.full_like(xs[0, b], initial)] * k)
            line.append(xs[t, b])
            out[t, b] = line.popleft()
    return out


@given(
    k=st.sampled_from([1, 2, 5, 9]),
    dtype=st.sampled_from(["float32", "int32", "uint8", "bool"]),
    resets=reset_patterns(),
    seed=st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_equals_a_deque_in_every_dtype(k, dtype, resets, seed):
    xs = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 99, (TIME, BATCH, 2)).astype(dtype)
    delay = Delay(xs[0, 0], k, initial_value=1)
    out = delay.unroll(delay.initialize_state(BATCH), jnp.asarray(xs), resets)
    assert out.output.dtype == dtype
    np.testing.assert_array_equal(out.output, deque_delay(xs, np.asarray(resets), k, 1))


SAMPLE = {"image": np.zeros((2, 2, 1), np.uint8), "speed": 0.0}
PURE = {k: Pure(Delay(SAMPLE, k, {"image": 7, "speed": 0.1})) for k in (1, 3, 9)}


@given(k=st.sampled_from([1, 3, 9]), resets=reset_patterns(), warm=reset_patterns(), seed=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_unroll_equals_stepping_for_pytrees_from_any_carry(k, resets, warm, seed):
    def inputs(seed):
        image = jnp.asarray(np.random.default_rng(seed).integers(0, 255, (TIME, BATCH, 2, 2, 1)), jnp.int32).astype(
            jnp.uint8
        )
        return {"image": image, "speed": normals(seed, TIME, BATCH)}

    pure = PURE[k]
    state = pure.unroll(pure.initialize_state(BATCH), inputs(seed + 100), warm).next_state
    assert_unroll_equals_stepping(pure, inputs(seed), resets, state)


def test_shows_the_initial_value_for_exactly_k_steps_after_a_reset():
    delay = Delay(jnp.zeros(()), 2, initial_value=-1.0)
    xs = jnp.arange(1.0, 7.0)[:, None]
    resets = jnp.array([0, 0, 0, 1, 0, 0], bool)[:, None]
    out = delay.unroll(delay.initialize_state(1), xs, resets).output[:, 0]
    np.testing.assert_array_equal(out, [-1, -1, 1, -1, -1, 4])


def test_a_sequence_is_shifted_at_once_without_a_scan_or_a_scatter():  # F47
    delay, xs = Delay(jnp.zeros(3), 4), normals(0, TIME, BATCH, 3)
    state, resets = delay.initialize_state(BATCH), jnp.zeros((TIME, BATCH), bool)
    jaxpr = jax.make_jaxpr(lambda xs: delay.unroll(state, xs, resets))(xs)
    used = {equation.primitive.name for equation in jaxpr.eqns}
    assert "cummax" in used and not used & {"scan", "while", "gather", "scatter", "dynamic_update_slice"}


def test_carry_of_one_environment_resets_like_that_of_a_batch():
    delay = Delay(SAMPLE, 2, {"image": 7, "speed": 0.5})
    batch = delay.initialize_state(3)
    one = delay.reset_state(jax.tree.map(lambda leaf: leaf[0] * 0, batch))
    jax.tree.map(np.testing.assert_array_equal, one, jax.tree.map(lambda leaf: leaf[0], batch))


def test_gradients_flow_through_the_buffer_but_not_past_a_reset():
    delay = Delay(jnp.zeros(()), 1)
    resets = jnp.array([0, 0, 1, 0], bool)[:, None]
    state = delay.initialize_state(1)
    gradient = jax.grad(lambda xs: delay.unroll(state, xs, resets).output.sum())(jnp.ones((4, 1)))
    np.testing.assert_array_equal(gradient[:, 0], [1, 0, 1, 0])


@pytest.mark.parametrize("k", [0, -1])
def test_refuses_less_than_one_step(k):
    with pytest.raises(ValueError, match=f"at least 1; got {k}"):
        Delay(jnp.zeros(2), k)


def test_refuses_what_its_dtype_cannot_hold():  # F40
    with pytest.raises(TypeError, match=r"1\.7 does not fit into int32"):
        Delay(jnp.zeros(2, jnp.int32), 1, initial_value=1.7)
    delay = Delay(jnp.zeros(2, jnp.int32), 1)
    with pytest.raises(TypeError, match="int32, which cannot hold float32"):
        delay(delay.initialize_state(1), jnp.ones((1, 2)))


def test_takes_numbers_and_shapes_as_sample():  # F40
    for sample in (0.0, jax.ShapeDtypeStruct((), jnp.float32)):
        assert Delay(sample, 3).initialize_state(2)["buffer"].shape == (2, 3)


def test_refuses_inputs_unlike_the_sample():
    delay = Delay({"a": jnp.zeros(2)}, 1)
    state = delay.initialize_state(1)
    with pytest.raises(ValueError, match="a tree like the sample"):
        delay(state, {"b": jnp.zeros((1, 2))})
    with pytest.raises(SizeError, match="takes 2 features on the last axis; got 3"):
        delay(state, {"a": jnp.zeros((1, 3))})


def test_survives_a_split_and_hashes_as_static():
    delay = Delay(SAMPLE, 2)
    graphdef, state = nnx.split(delay)
    assert hash(graphdef) == hash(nnx.split(Delay(SAMPLE, 2))[0])
    assert nnx.merge(graphdef, state).k_steps == 2


def test_refuses_a_number_of_steps_that_is_no_int():  # the type checker of tests refuses 1.5 before
    with pytest.raises(TypeError, match="k_steps must be an int; got True"):
        Delay(jnp.zeros(2), True)


def test_a_size_taken_for_a_sample_says_what_it_was_made_for_and_what_to_pass():
    delay = Delay(4, 2)  # one number, unlike Normalizer(4)
    with pytest.raises(
        ValueError, match=r"examples of shape \[\], so that it takes \[batch\]; got \[8, 4\].*zeros\(\(4,\)\)"
    ):
        delay(delay.initialize_state(8), jnp.ones((8, 4)))
    with pytest.raises(ValueError, match=r"it takes \[time, batch\]; got \[3, 8, 4\]"):
        delay.unroll(delay.initialize_state(8), jnp.ones((3, 8, 4)), jnp.zeros((3, 8), bool))


def test_refuses_a_sample_of_nothing_and_initial_values_that_overflow():
    with pytest.raises(ValueError, match="Delay: sample_input must have at least one array"):
        Delay({}, 1)
    with pytest.raises(TypeError, match=r"1e\+300 does not fit into float32"):
        Delay(jnp.zeros(2), 1, initial_value=1e300)
    assert np.isnan(Delay(0.0, 1, initial_value=float("nan")).initialize_state(1)["buffer"]).all()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *[(value, jnp.float16) for value in (1e6, -1e6, 70000, 1e-10)],
        (1e39, jnp.bfloat16),
        (1e39, jnp.float32),
        *[(value, jnp.uint8) for value in (300, 256, -1, 0.5, float("nan"), float("inf"))],
        *[(value, jnp.int8) for value in (128, -129)],
        *[(value, jnp.int32) for value in (0.5, 2**31, -(2**31) - 1, float("-inf"))],
        *[(value, jnp.bool_) for value in (2, -1, 0.5)],
    ],
)
def test_refuses_an_initial_value_that_would_be_another_number(value, dtype):  # F40
    with pytest.raises(
        TypeError, match=re.escape(f"the initial value {value!r} does not fit into {jnp.dtype(dtype)}.")
    ):
        Delay({"a": jnp.zeros(2), "b": jnp.zeros(2, dtype)}, 1, initial_value={"a": 0.0, "b": value})


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *[(value, jnp.float16) for value in (65504, -65504.0, 0.1, float("inf"), 0)],
        *[(value, jnp.uint8) for value in (0, 255, 7.0, True)],
        *[(value, jnp.int32) for value in (-(2**31), 2**31 - 1)],
        *[(value, jnp.bool_) for value in (0, 1, True)],
    ],
)
def test_takes_an_initial_value_that_the_dtype_holds_and_shows_it(value, dtype):
    delay = Delay(jnp.zeros((), dtype), 2, initial_value=value)
    xs = jnp.ones((4, 1), dtype)
    out = delay.unroll(delay.initialize_state(1), xs, jnp.zeros((4, 1), bool).at[3].set(True)).output
    assert out.dtype == dtype
    np.testing.assert_array_equal(out[:, 0], np.asarray([value, value, 1, value]).astype(dtype))
