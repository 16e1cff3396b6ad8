"""Agents of ``triax train`` for observations that are not numbers alone."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Tuple

from triax.cli.pure_agents import _features_of, _has_mean
from triax.runs import Run

from .running import run

MANY = Dict({"kind": Discrete(3, start=1), "place": Box(0, 1, (2,), np.float32), "switches": MultiBinary(2)})


def test_features_are_one_hots_of_what_is_discrete_beside_the_numbers():
    batch = {
        "kind": np.array([1, 3]),
        "place": np.array([[0.25, 0.5], [0.0, 1.0]], np.float32),
        "switches": np.array([[0, 1], [1, 1]], np.int8),
    }
    expected = [[1, 0, 0, 0.25, 0.5, 0, 1], [0, 0, 1, 0, 1, 1, 1]]
    np.testing.assert_array_equal(_features_of(MANY)(batch), expected)


@pytest.mark.parametrize(
    ("space", "has"),
    [
        (Box(0, 1, (2, 2)), True),
        (Tuple((Box(0, 1, (2,)), Dict({"a": Box(0, 1, (1,))}))), True),
        (Discrete(4), False),
        (MANY, False),
    ],
)
def test_only_boxes_have_a_mean(space, has):
    assert _has_mean(space) == has


def test_ppo_learns_from_a_dict_with_a_discrete_part_by_a_tuple_of_actions(tmp_path, capsys):
    arguments = ["train", "ppo", "cli.envs:Named-v0", "--hidden", "16", "--num-envs", "8", "--rollout-length", "32"]
    arguments += ["--total-steps", "6000", "--eval-every", "3000", "--learning-rate", "0.01", "--eval-episodes", "5"]
    assert run(*arguments, "--run-dir", tmp_path / "a") == 0
    returns = Run.open(tmp_path / "a").read_metrics().series("eval/episode_reward/mean")[1]
    assert max(returns) > 7  # of 8; by chance 8 / 3
    assert run("evaluate", tmp_path / "a", "--episodes", "2") == 0
