"""Gymnasium spaces for hypothesis: every supported kind, nested."""

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

SHAPES = st.sampled_from([(), (1,), (3,), (2, 2)])
BOUNDS = st.sampled_from([-np.inf, -2.5, 0.0, 1.0, 7.0, np.inf])


@st.composite
def discretes(draw):
    return spaces.Discrete(draw(st.integers(1, 6)), start=draw(st.integers(-3, 5)))


@st.composite
def float_boxes(draw):
    shape = draw(SHAPES)
    size = int(np.prod(shape))
    pairs = [draw(st.tuples(BOUNDS, BOUNDS)) for _ in range(size)]
    low = np.array([min(p) if min(p) < np.inf else -np.inf for p in pairs]).reshape(shape)
    high = np.array([max(p) if max(p) > -np.inf else np.inf for p in pairs]).reshape(shape)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return spaces.Box(low.astype(dtype), high.astype(dtype), shape, dtype)


@st.composite
def integer_boxes(draw):
    dtype = draw(st.sampled_from([np.uint8, np.int32, np.int64]))
    low = draw(st.integers(0, 5))
    return spaces.Box(low, low + draw(st.integers(0, 250)), draw(SHAPES), dtype)


@st.composite
def multi_discretes(draw):
    shape = draw(st.sampled_from([(), (1,), (2,), (2, 1), (2, 2)]))
    size = int(np.prod(shape))
    nvec = np.array([draw(st.integers(1, 4)) for _ in range(size)]).reshape(shape)
    start = np.array([draw(st.integers(-2, 3)) for _ in range(size)]).reshape(shape)
    return spaces.MultiDiscrete(nvec, start=start)


multi_binaries = st.sampled_from([1, 3, (2,), (3, 2)]).map(spaces.MultiBinary)
leaves = st.one_of(discretes(), float_boxes(), integer_boxes(), multi_discretes(), multi_binaries)
any_space = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2).map(spaces.Tuple),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, min_size=1, max_size=2).map(spaces.Dict),
    ),
    max_leaves=4,
)
