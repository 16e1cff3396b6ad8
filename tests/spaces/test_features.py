"""Whatever a space holds as rows of floats."""

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

from triax.spaces import features_of, num_features

MANY = Dict({"kind": Discrete(3, start=1), "place": Box(0, 1, (2,), np.float32), "switches": MultiBinary(2)})


def test_features_are_one_hots_of_what_is_discrete_beside_the_numbers():
    batch = {
        "kind": np.array([1, 3]),
        "place": np.array([[0.25, 0.5], [0.0, 1.0]], np.float32),
        "switches": np.array([[0, 1], [1, 1]], np.int8),
    }
    expected = [[1, 0, 0, 0.25, 0.5, 0, 1], [0, 0, 1, 0, 1, 1, 1]]
    np.testing.assert_array_equal(features_of(MANY)(batch), expected)
    assert num_features(MANY) == 7
