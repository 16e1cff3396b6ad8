"""Every Python block of the README runs, in order, in one session, as a reader would type them."""

import numpy as np
import pytest

from pages import promised_lines, run

PAGE = "README.md"


@pytest.mark.slow
def test_every_block_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    session = run(PAGE)
    promised, printed = promised_lines(PAGE), capsys.readouterr().out.splitlines()
    assert len(promised) == 3 and [line for line in printed if line in promised] == promised
    returns = [evaluation["eval/episode_reward/mean"] for evaluation in session["result"].eval_history]
    assert returns[0] < -30 and returns[-1] > -2, "train_ppo learns what the page says"
    assert session["metrics"]["return"].shape == (2,) and len(session["results"].returns) == 3
    assert np.isfinite(session["Adv"]).all() and len(session["steps"]) == 16
