"""What rules take of a batch: checked where it is on the host, in dtypes that never change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from linear_functions import DISCRETE, IN, RN, S_NEXT, A, B, S, W, batch, with_field
from triax.learning import BatchEncoder, clip_weights
from triax.reward_tracing import NStep, TransitionBatch

ENCODE = BatchEncoder("Rule", DISCRETE.observation_space, DISCRETE.action_space, next_action=True)


def test_a_batch_comes_out_as_it_went_in():
    decoded = ENCODE(batch()).decode()
    for name, expected in {"S": S, "A": A, "Rn": RN, "In": IN, "S_next": S_NEXT, "W": W}.items():
        np.testing.assert_allclose(getattr(decoded, name), expected, rtol=1e-6)
    assert decoded.idx is None  # not read


def test_dtypes_do_not_depend_on_those_of_the_batch():
    wide = batch(S=S.astype(np.float64), A=A.astype(np.int16))
    wide.Rn = RN.astype(np.float64)
    for one, other in zip(jax.tree.leaves(ENCODE(wide)), jax.tree.leaves(ENCODE(batch())), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_device_arrays_stay_on_the_device_and_mix_with_numpy_ones():
    encoded = ENCODE(jax.tree.map(jnp.asarray, batch()))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(encoded))
    mixed = ENCODE(with_field("W", jnp.asarray(W))).decode()
    assert isinstance(mixed.W, jax.Array)
    assert isinstance(mixed.Rn, np.ndarray)
    np.testing.assert_allclose(mixed.W, W)


def test_fields_that_are_not_read_are_left_out():
    of_states = BatchEncoder("Rule", DISCRETE.observation_space, None)(batch()).decode()
    assert of_states.A is None
    assert of_states.A_next is None
    assert of_states.logP_next is None
    assert of_states.extra_info is None


def test_anything_else_than_a_batch_is_refused():
    with pytest.raises(TypeError, match=r"Rule: transition_batch must be a TransitionBatch or a Trajectory; got tuple"):
        ENCODE(tuple(batch()))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["Rn", "In", "logP", "W"])
def test_columns_must_be_finite_and_the_message_names_rule_field_and_rows(name, bad):
    column = np.array(getattr(batch(), name))
    column[[1, 3]] = bad
    with pytest.raises(ValueError, match=rf"Rule: batch\.{name} must be finite; .* in the rows \[1, 3\]"):
        ENCODE(with_field(name, column))


@pytest.mark.parametrize("name", ["S", "S_next"])
def test_observations_must_not_be_nan(name):
    states = np.array(S)
    states[2, 0] = np.nan
    with pytest.raises(ValueError, match=rf"Rule: batch\.{name} .*NaN"):
        ENCODE(batch(**{name: states}))


def test_huge_finite_numbers_pass():
    """Their squares overflow, which the fast check looks at."""
    decoded = ENCODE(batch(Rn=np.full(B, 1e30))).decode()
    np.testing.assert_allclose(decoded.Rn, 1e30)


@pytest.mark.parametrize("name", ["A", "A_next"])
@pytest.mark.parametrize("bad", [-1, 4])
def test_actions_must_be_in_the_space(name, bad):
    actions = np.array(A)
    actions[2] = bad
    with pytest.raises(ValueError, match=rf"Rule: batch\.{name} must be .*Discrete\(4\).*row 2"):
        ENCODE(batch(**{name: actions}))


@pytest.mark.parametrize("name", ["S", "A", "logP", "Rn", "In", "S_next", "A_next", "logP_next", "W"])
@pytest.mark.parametrize("as_array", [np.asarray, jnp.asarray], ids=["NumPy", "JAX"])
def test_leaves_must_agree_in_length(name, as_array):
    shorter = as_array(getattr(batch(), name)[:3])
    with pytest.raises(ValueError, match=rf"Rule: the fields of the batch disagree in length.*{name}.*\(3,"):
        ENCODE(with_field(name, shorter))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((B, 1)), r"Rule: batch\.Rn must be a vector \[batch\]; got shape \(5, 1\)"),
        (jnp.zeros((B, 1)), r"Rule: batch\.Rn must be a vector \[batch\]; got shape \(5, 1\)"),
        (None, r"Rule: batch\.Rn must be"),
        (["a"] * B, r"Rule: batch\.Rn must hold numbers"),
    ],
)
def test_columns_must_be_vectors_of_numbers(value, message):
    with pytest.raises(ValueError, match=message):
        ENCODE(with_field("Rn", value))


def test_an_empty_batch_is_refused():
    empty = TransitionBatch(S[:0], A[:0], RN[:0], RN[:0], IN[:0], S_NEXT[:0], A[:0], RN[:0])
    with pytest.raises(ValueError, match="Rule: the batch is empty"):
        ENCODE(empty)


def test_a_missing_next_action_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"Rule: batch\.A_next is missing.*s_next is left out"):
        ENCODE(batch(A_next=None, logP_next=None))


def test_next_actions_without_propensities_are_known():
    assert not np.isnan(ENCODE(batch(logP_next=None)).logP_next).any()


def test_nan_marks_unknown_next_actions_and_passes():
    marked = np.array([0, np.nan, 0, 0, 0], np.float32)
    np.testing.assert_array_equal(ENCODE(batch(logP_next=marked)).logP_next, marked)


# ------------------------------------------------------------------ what was recorded


def traced(n, record=True):
    tracer = NStep(n=n, gamma=0.9, record_extra_info=record)
    for t in range(6):
        tracer.add(np.full(3, t, np.float64), t % 4, 1.0, t == 5)
    return tracer.flush()


def test_only_the_recorded_states_that_are_read_are_handed_on():
    encode = BatchEncoder("Rule", DISCRETE.observation_space, DISCRETE.action_space, recorded_steps=(2, 0))
    info = encode(traced(n=2)).extra_info
    assert info.keys() == {"states", "dones"}
    assert info["states"][1] is None
    np.testing.assert_array_equal(info["states"][2][:4, 0], [2, 3, 4, 5])
    assert info["states"][2].dtype == np.float32
    np.testing.assert_array_equal(info["dones"][1], [False, False, False, False, True, True])


def test_a_batch_without_recorded_steps_is_refused_with_the_remedy():
    encode = BatchEncoder("Rule", DISCRETE.observation_space, None, recorded_steps=(1,))
    with pytest.raises(TypeError, match=r"Rule: batch\.extra_info is missing.*record_extra_info=True"):
        encode(traced(n=2, record=False))
    with pytest.raises(ValueError, match=r"Rule: the regularizer reads 1 steps ahead.*n=0"):
        encode(with_field("extra_info", {"states": (S,), "dones": (np.zeros(B, bool),)}))


def test_recorded_states_must_not_be_nan():
    encode = BatchEncoder("Rule", DISCRETE.observation_space, None, recorded_steps=(1,))
    made = traced(n=1)
    made.extra_info["states"][1][0] = np.nan
    with pytest.raises(ValueError, match=r"Rule: batch\.extra_info\['states'\].*NaN"):
        encode(made)


# ------------------------------------------------------------------ trees, weights


def test_composite_observations_are_checked_leaf_by_leaf():
    space = Dict(x=Box(-1, 1, (2,)), y=Discrete(3))
    encode = BatchEncoder("Rule", space, None)
    observations = {"x": np.zeros((B, 2), np.float32), "y": np.zeros(B, int)}
    made = batch(S=observations, S_next=observations)
    assert encode(made).S["y"].dtype == np.int32
    with pytest.raises(ValueError, match=r"Rule: batch\.S\['y'\]"):
        encode(batch(S={**observations, "y": np.full(B, 3)}, S_next=observations))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0.1, 10.0), [0.1, 0.5, 10.0]), (None, [0.01, 0.5, 20.0]), ((0.0, 10.0), [0.01, 0.5, 10.0])],
)
def test_weights_are_clipped_to_bounds_or_left_alone(bounds, expected):  # F20
    made = TransitionBatch(S[:3], A[:3], RN[:3], RN[:3], IN[:3], S_NEXT[:3], W=np.array([0.01, 0.5, 20.0]))
    clipped = clip_weights(made, None if bounds is None else jnp.array(bounds))
    np.testing.assert_allclose(clipped.W, expected, rtol=1e-6)
    np.testing.assert_allclose(made.W, [0.01, 0.5, 20.0], rtol=1e-6)  # the caller's batch is as it was
