"""Sequences through random networks of all kinds of layers equal steps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import Sequential

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, reset_patterns
from .nestings import CONTAINERS, LAYERS, Counter, joined, nestings


def check(data, n, time, batch, seed):
    pure = Pure(Sequential([data.draw(nestings(n)), Counter()]))
    resets = data.draw(reset_patterns(time, batch))
    assert_unroll_equals_stepping(pure, normals(seed, time, batch, n), resets)


@given(data=st.data(), n=st.integers(2, 4), time=st.integers(4, 8), batch=st.integers(2, 3), seed=st.integers(0, 99))
@settings(max_examples=4, deadline=None)
def test_unroll_of_a_random_nesting_equals_stepping(data, n, time, batch, seed):
    check(data, n, time, batch, seed)


@pytest.mark.slow
@given(data=st.data(), n=st.integers(1, 5), time=st.integers(1, 9), batch=st.integers(1, 4), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_unroll_equals_stepping_for_random_networks_shapes_and_resets(data, n, time, batch, seed):
    check(data, n, time, batch, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_layer_stands_in_one_container_or_another(kind):
    names = list(LAYERS)[CONTAINERS.index(kind) :: len(CONTAINERS)]
    net = joined(kind, {name: LAYERS[name](3) for name in names}, 3)
    resets = normals(1, TIME, BATCH) > 1
    assert_unroll_equals_stepping(Pure(Sequential([net])), normals(0, TIME, BATCH, 3), resets)
