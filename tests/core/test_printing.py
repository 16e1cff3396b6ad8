import dataclasses
from collections import OrderedDict, namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.core.printing import pretty_print, pretty_repr

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Batch:
    S: object
    n: int


class Frame:
    """As pandas objects do."""

    def to_numpy(self):
        return np.arange(4)


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (3, "3"),
        ("a", "'a'"),
        ({}, "{}"),
        ([], "[]"),
        ((), "()"),
        (
            np.array([1.0, 2.0, 30.0]),
            "array(shape=(3,), dtype=float64, min=1, median=2, max=30)",
        ),
        (
            jnp.array([[1234567]]),
            "Array(shape=(1, 1), dtype=int32, min=1.23e+06, median=1.23e+06, max=1.23e+06)",
        ),
        (np.array([True, False, True]), "array(shape=(3,), dtype=bool, 2 true)"),
        (jnp.ones(2, jnp.bfloat16), "Array(shape=(2,), dtype=bfloat16, min=1, median=1, max=1)"),
        (np.zeros((0, 2)), "array(shape=(0, 2), dtype=float64)"),
        (np.array(["a"]), "array(shape=(1,), dtype=<U1)"),
        (jax.random.key(0), "Array(shape=(), dtype=key<fry>)"),
        (Frame(), "Frame(shape=(4,), dtype=int64, min=0, median=1.5, max=3)"),
        ([1, (2,)], "[\n  1,\n  (\n    2,\n  ),\n]"),
        ({"a": {"b": 1}}, "{\n  'a': {\n    'b': 1,\n  },\n}"),
        (OrderedDict(a=1), "OrderedDict{\n  'a': 1,\n}"),
        (Point(1, [2]), "Point(\n  x=1,\n  y=[\n    2,\n  ],\n)"),
        (
            Batch(S=np.zeros(1), n=2),
            "Batch(\n  S=array(shape=(1,), dtype=float64, min=0, median=0, max=0),\n  n=2,\n)",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_text_of(obj, text):
    assert pretty_repr(obj) == text


def test_depth_indents_all_but_the_first_line():
    assert pretty_repr([1], d=2) == "[\n      1,\n    ]"


def test_tracers_have_no_numbers():
    seen = []
    jax.jit(lambda x: seen.append(pretty_repr({"x": x})))(jnp.ones(3))
    assert seen == ["{\n  'x': Array(shape=(3,), dtype=float32),\n}"]


def test_print_ends_the_line(capsys):
    pretty_print([1])
    assert capsys.readouterr().out == "[\n  1,\n]\n"
