"""Every Python block of the README runs, in order, in one session, as a reader would type them."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from quick_compilation import compile_module_quickly  # noqa: F401 (a fixture)

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_every_block_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    session: dict[str, Any] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README block {number}", "exec"), session)
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"print\(.*\)  # (\(.*\))", "".join(BLOCKS))
    assert len(promised) == 3 and [line for line in printed if line in promised] == promised
    returns = [evaluation["eval/episode_reward/mean"] for evaluation in session["result"].eval_history]
    assert returns[0] < -30 and returns[-1] > -2, "train_ppo learns what the page says"
    assert session["metrics"]["return"].shape == (2,) and len(session["results"].returns) == 3
    assert np.isfinite(session["Adv"]).all() and len(session["steps"]) == 16
