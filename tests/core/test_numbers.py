"""A coefficient is a finite number within its bounds, in float32 too."""

import jax.numpy as jnp
import numpy as np
import pytest

from triax.core.numbers import check_count, check_number


@pytest.mark.parametrize(
    "value", [0.5, 1, np.float64(0.5), np.int8(1), np.array(0.5), jnp.float32(0.5), jnp.bfloat16(1)]
)
def test_numbers_of_any_kind_become_floats(value):
    number = check_number("Rule", "x", value)
    assert type(number) is float
    assert number == float(value)


@pytest.mark.parametrize("value", [None, "1", True, np.bool_(True), 1j, np.ones(1), jnp.ones((1, 1)), [1.0]])
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(TypeError, match="Rule: x must be a number; got"):
        check_number("Rule", "x", value)


@pytest.mark.parametrize(
    ("value", "bounds", "wanted"),
    [
        (np.nan, {}, "finite"),
        (-np.inf, {}, "finite"),
        (1e39, {}, "finite"),  # infinite in float32
        (0, {"positive": True}, "positive and finite"),
        (1e-50, {"positive": True}, "positive and finite"),  # 0 in float32
        (-0.1, {"low": 0}, "finite and at least 0"),
        (1.1, {"low": 0, "high": 1}, r"in \[0, 1\]"),
        (np.nan, {"low": 0, "high": 1}, r"in \[0, 1\]"),
    ],
)
def test_a_number_out_of_bounds_is_a_value_error_that_tells_them(value, bounds, wanted):
    with pytest.raises(ValueError, match=f"Rule: x must be {wanted}; got"):
        check_number("Rule", "x", value, **bounds)


def test_a_count_is_an_integer_that_is_large_enough():
    assert check_count("Agent", "n", np.int64(3)) == 3
    for value in (1.0, True, None, "3"):
        with pytest.raises(TypeError, match="Agent: n must be an int; got"):
            check_count("Agent", "n", value)
    with pytest.raises(ValueError, match="Agent: n must be at least 1; got 0"):
        check_count("Agent", "n", 0)
    assert check_count("Agent", "n", 0, low=0) == 0
