"""Agents of ``triax train`` for observations that are not numbers alone."""

from triax.runs import Run

from .running import run


def test_ppo_learns_from_a_dict_with_a_discrete_part_by_a_tuple_of_actions(tmp_path, capsys):
    arguments = ["train", "ppo", "cli.envs:Named-v0", "--hidden", "16", "--num-envs", "8", "--rollout-length", "32"]
    arguments += ["--total-steps", "6000", "--eval-every", "3000", "--learning-rate", "0.01", "--eval-episodes", "5"]
    assert run(*arguments, "--run-dir", tmp_path / "a") == 0
    returns = Run.open(tmp_path / "a").read_metrics().series("eval/episode_reward/mean")[1]
    assert max(returns) > 7  # of 8; by chance 8 / 3
    assert run("evaluate", tmp_path / "a", "--episodes", "2") == 0
