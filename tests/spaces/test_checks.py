import numpy as np
import pytest
from gymnasium import spaces

from triax.spaces import batch_encoder, check_space, decoder, default_preprocessor, encoder, safe_sample

UNSUPPORTED = [
    spaces.Text(3),
    spaces.Graph(spaces.Box(0, 1, (2,)), None),
    spaces.Sequence(spaces.Discrete(3)),
    spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)]),
]


@pytest.mark.parametrize("space", UNSUPPORTED)
def test_unsupported_kinds_are_refused_with_the_supported_ones(space):
    with pytest.raises(TypeError, match=r"V: observation_space.*Box, MultiDiscrete, MultiBinary, Tuple, Dict"):
        check_space(space, who="V", argument="observation_space")


def test_the_unsupported_part_of_a_nested_space_is_named():
    nested = spaces.Dict(a=spaces.Tuple([spaces.Discrete(2), spaces.Text(3)]))
    with pytest.raises(TypeError, match=r"observation_space\['a'\]\[1\]: Text"):
        check_space(nested, who="V", argument="observation_space")


def test_what_is_no_space_is_refused_by_type():
    with pytest.raises(TypeError, match=r"Q: action_space must be a gymnasium.spaces.Space; got int"):
        check_space(3, who="Q", argument="action_space")


@pytest.mark.parametrize(
    "space", [spaces.Dict({}), spaces.Tuple([]), spaces.Box(0, 1, (0,)), spaces.MultiDiscrete([])], ids=str
)
def test_spaces_with_nothing_in_them_are_refused(space):
    with pytest.raises(TypeError, match="nothing in it"):
        check_space(space, who="V", argument="space")


@pytest.mark.parametrize(
    "space",
    [spaces.Discrete(2**33), spaces.Discrete(2, start=2**31 - 1), spaces.MultiDiscrete([2**33])],
    ids=str,
)
def test_discrete_values_beyond_32_bits_are_refused(space):
    with pytest.raises(TypeError, match="32 bits"):
        check_space(space, who="V", argument="space")


def test_keys_that_jax_cannot_sort_are_refused():
    with pytest.raises(TypeError, match="comparable"):
        check_space(spaces.Dict([(1, spaces.Discrete(2)), ("a", spaces.Discrete(2))]), who="V", argument="space")


@pytest.mark.parametrize(
    "make",
    [
        lambda space: encoder(space, who="V", argument="s"),
        lambda space: batch_encoder(space, who="V", argument="S"),
        decoder,
        default_preprocessor,
        safe_sample,
    ],
)
@pytest.mark.parametrize("space", [spaces.Text(3), "Discrete", spaces.Tuple([spaces.Text(3)])])
def test_every_function_of_a_space_checks_it(make, space):
    with pytest.raises(TypeError):
        make(space)


def test_a_space_with_long_bounds_is_described_in_one_short_line():
    space = spaces.Box(np.arange(400.0), np.arange(400.0) + 1, dtype=np.float64)
    with pytest.raises(ValueError) as error:
        encoder(space, who="V", argument="s")(np.zeros(3))
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


@pytest.mark.parametrize("dtype, bound", [(np.int64, 2**40), (np.uint64, 2**33), (np.int64, 2**31)])
def test_boxes_of_integers_beyond_what_jax_holds_are_refused(dtype, bound):
    with pytest.raises(TypeError, match=rf"x: space: bounds must fit u?int32, which holds u?int64.* got 0 to {bound}"):
        check_space(spaces.Box(0, bound, (2,), dtype), who="x", argument="space")


@pytest.mark.parametrize(
    "box",
    [
        spaces.Box(-np.inf, np.inf, (2,), np.int64),
        spaces.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (2,), np.int64),
        spaces.Box(-(2**31), 2**31 - 1, (2,), np.int64),
        spaces.Box(0, 2**32 - 1, (2,), np.uint32),
    ],
)
def test_boxes_of_integers_without_bounds_or_with_fitting_ones_are_accepted(box):
    check_space(box, who="x", argument="space")
