import json
import shutil

import numpy as np
import pytest

from triax.runs import Run

from .running import run


@pytest.fixture
def figures(monkeypatch):
    from matplotlib.figure import Figure

    seen, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (seen.append(self), save(self, *args, **kw)))
    return seen


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def evaluations(path):
    return Run.open(path).read_metrics().series("eval/episode_reward/mean")


def test_runs_that_differ_only_in_their_seed_are_one_curve(strips, tmp_path, capsys, figures):
    out = tmp_path / "a.svg"
    runs = [strips / "a" / "0", strips / "a" / "1", strips / "b"]
    assert run("plot", *runs, "--out", out, "--spread", "range") == 0
    assert legend_of(figures[0]) == ["gamma=0.99 (2 runs)", "gamma=0.5", "least to greatest", "single runs"]
    axes = figures[0].axes[0]
    assert axes.get_title(loc="left") == "dqn on cli.envs:Strip-v0"
    (steps, first), (_, second), (_, other) = map(evaluations, runs)
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["gamma=0.99 (2 runs)"], (first + second) / 2)
    np.testing.assert_allclose(drawn["gamma=0.5"], other)
    said = capsys.readouterr().out
    assert f"gamma=0.5: 1 run, {other[-1]:.1f} at step {steps[-1]}" in said
    least, greatest = sorted([first[-1], second[-1]])
    assert f"gamma=0.99: 2 runs, {(least + greatest) / 2:.1f} ({least:.1f} to {greatest:.1f}) at step 80" in said
    assert f"Picture: {out}  (mean return of evaluations; band: least to greatest over seeds)" in said
    assert out.exists()


def test_a_run_named_twice_is_drawn_once(strips, tmp_path, figures):
    assert run("plot", strips / "b", strips / "b", "--out", tmp_path / "a.png") == 0
    assert legend_of(figures[0]) == ["dqn on cli.envs:Strip-v0"]


def test_another_metric_is_drawn_when_asked_for(strips, tmp_path, capsys, figures):
    assert run("plot", strips / "b", "--out", tmp_path / "a.png", "--metric", "episode/steps") == 0
    assert figures[0].axes[0].get_ylabel() == "episode/steps"
    assert set(figures[0].axes[0].lines[0].get_ydata()) == {8.0}
    assert run("plot", strips / "b", "--out", tmp_path / "b.png", "--metric", "nonsense") == 1
    assert "has no values of 'nonsense'; it has episode/avg_return, episode/return" in capsys.readouterr().err


def test_episodes_are_drawn_smoothed_where_a_run_has_no_evaluations(strips, tmp_path, figures):
    path = shutil.copytree(strips / "b", tmp_path / "b")
    lines = (path / "metrics.jsonl").read_text().splitlines(keepends=True)
    (path / "metrics.jsonl").write_text("".join(line for line in lines if "eval/" not in line))
    assert run("plot", path, strips / "a" / "0", "--out", tmp_path / "a.png") == 0
    assert figures[0].axes[0].get_ylabel() == "return of training episodes, smoothed"


def test_curves_of_other_algorithms_and_environments_are_told_apart(strips, tmp_path, figures):
    paths = []
    for name, change in (("x", {"env": "Other-v0"}), ("y", {"algorithm": "magic", "tau": 1}), ("z", {"tau": 2})):
        paths.append(shutil.copytree(strips / "b", tmp_path / name))
        content = json.loads((paths[-1] / "config.json").read_text())
        content["config"] |= change
        (paths[-1] / "config.json").write_text(json.dumps(content))
    assert run("plot", strips / "b", *paths, "--out", tmp_path / "a.png") == 0
    labels = legend_of(figures[0])
    assert labels == [
        "cli.envs:Strip-v0, dqn",
        "Other-v0, dqn",
        "cli.envs:Strip-v0, magic, tau=1",
        "cli.envs:Strip-v0, dqn, tau=2",
    ]


@pytest.mark.parametrize(("arguments", "code"), [((), 2), (("/nowhere",), 1)])
def test_no_runs_and_broken_ones_are_said(arguments, code, tmp_path, capsys):
    assert run("plot", *arguments) == code
    assert capsys.readouterr().err.count("Traceback") == 0


def test_another_suffix_is_an_error(strips, tmp_path, capsys):
    assert run("plot", strips / "b", "--out", tmp_path / "a.jpg") == 1
    assert "a picture ends in .png, .svg, .pdf" in capsys.readouterr().err
