import json
import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.core.json_files import NON_FINITE, decode_json, encode_json, read_json, write_json

strings = st.text().filter(lambda text: text not in NON_FINITE)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | strings,
    lambda children: st.lists(children) | st.dictionaries(strings, children),
    max_leaves=10,
)


def refuse(constant):
    raise AssertionError(f"{constant} is not standard JSON")


@settings(max_examples=50, deadline=None)
@given(values)
def test_values_survive_standard_json(value):
    text = json.dumps(encode_json(value), allow_nan=False)
    again = decode_json(json.loads(text, parse_constant=refuse))
    assert repr(again) == repr(value)  # repr: NaN equals nothing, -0.0 equals 0.0


@pytest.mark.parametrize(
    "scalar", [np.float32(0.5), np.int64(3), np.bool_(True), np.array(2.5), jnp.float32(0.25), jnp.int32(7)]
)
def test_array_scalars_become_python_numbers(scalar):
    assert encode_json(scalar) == scalar.item()
    assert type(encode_json(scalar)) is type(scalar.item())


def test_low_precision_scalars_become_python_numbers():
    assert encode_json(jnp.bfloat16(1.5)) == 1.5


def test_spelled_numbers_are_what_float_reads():
    assert all(repr(float(text)) == repr(number) for text, number in NON_FINITE.items())
    assert encode_json([math.nan, math.inf, -math.inf]) == list(NON_FINITE)


@pytest.mark.parametrize(
    ("value", "error", "place"),
    [
        ({"a": [1, object()]}, TypeError, r"metadata\['a'\]\[1\]"),
        ({"a": np.zeros(3)}, TypeError, r"metadata\['a'\].*\(3,\)"),
        ({"a": {1: 2}}, TypeError, r"metadata\['a'\]: keys must be strings, got 1"),
        ({"a": "NaN"}, ValueError, r"metadata\['a'\].*'NaN'"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_place(value, error, place):
    with pytest.raises(error, match=place):
        encode_json(value, "metadata")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError):
        write_json(path, {"a": math.nan})
    assert read_json(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_broken_file_is_named(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text('{"a": ')
    with pytest.raises(ValueError, match=r"broken\.json is not a JSON file"):
        read_json(path)
