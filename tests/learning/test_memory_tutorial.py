"""The code blocks of docs/tutorials/memory.md run, print what the page says, and train both functions."""

import jax
import numpy as np

from pages import promised_lines, run

PAGE = "docs/tutorials/memory.md"


def test_the_page_runs_and_prints_what_it_says(capsys):
    names = run(PAGE)
    promised = promised_lines(PAGE)
    assert capsys.readouterr().out.splitlines() == promised and len(promised) == 5
    assert names["td"].optimizer_state[0].count == names["ppo"].optimizer_state[0].count == 1
    counts = [
        leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(names["pi"].function_state)
        if "'counter'" in jax.tree_util.keystr(path)
    ]
    assert np.sum(counts) == 16  # the statistics saw each step once
