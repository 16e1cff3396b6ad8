"""The code blocks of docs/tutorials/device.md run, print what the page says, and learn what it is about."""

import pytest

from pages import promised_lines, run

PAGE = "docs/tutorials/device.md"


@pytest.mark.slow
def test_the_page_runs_prints_what_it_says_and_learns_with_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run(PAGE)
    promised, printed = promised_lines(PAGE), capsys.readouterr().out.splitlines()
    assert len(promised) == 5 and [line for line in printed if line in promised] == promised
    history = names["resumed"].eval_history
    assert [evaluation["step"] for evaluation in history] == [0, 10_240, 20_480, 30_720]
    # Of 8, a policy without memory gets 1 in the first step and 0 on average after it.
    assert history[-1]["eval/episode_reward/mean"] > 6
    assert names["metrics"]["eval/episode_reward/mean"] > 6, "the student remembers too"
