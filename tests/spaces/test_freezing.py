"""Tests of values that compare by content."""

import copy

import numpy as np
from gymnasium import spaces

from triax.proba_dists import CategoricalDist, NormalDist, ProbaDist
from triax.spaces import frozen


def spaces_of(high):
    box = spaces.Box(0.0, high, (2,))
    return spaces.Dict(a=spaces.Tuple([box, spaces.Discrete(3, start=1)]), b=spaces.MultiDiscrete([2, 3]))


def test_equal_content_freezes_to_equal_hashable_values():
    for value in ([1, (2, {"a": np.arange(3)})], spaces_of(1.0), {"x": [spaces.MultiBinary((2, 2))]}):
        twin = copy.deepcopy(value)
        assert frozen(value) == frozen(twin)
        assert hash(frozen(value)) == hash(frozen(twin))


def test_a_difference_that_space_equality_overlooks_tells_spaces_apart():
    near = 1.0 + 1e-6
    assert spaces_of(1.0) == spaces_of(near)  # gymnasium compares bounds approximately
    assert frozen(spaces_of(1.0)) != frozen(spaces_of(near))


def test_drawing_from_a_space_does_not_change_what_it_is():
    used = spaces_of(1.0)
    used.seed(0)
    used.sample()
    assert frozen(used) == frozen(spaces_of(1.0))


def test_distributions_are_equal_exactly_if_space_and_options_are():
    assert ProbaDist(spaces_of(1.0)) == ProbaDist(spaces_of(1.0))
    assert hash(ProbaDist(spaces_of(1.0))) == hash(ProbaDist(spaces_of(1.0)))
    assert ProbaDist(spaces_of(1.0)) != ProbaDist(spaces_of(2.0))
    assert CategoricalDist(spaces.Discrete(3), 0.1) != CategoricalDist(spaces.Discrete(3), 0.2)
    assert NormalDist(spaces.Box(-1, 1, (2,))) != CategoricalDist(spaces.Discrete(3))
