import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from triax.runs import MetricsLog, plot_learning_curve
from triax.runs.learning_curve import running_statistics


def rows(steps, name, values):
    return [{"step": int(step), "time": 0.0, name: float(value)} for step, value in zip(steps, values, strict=True)]


def has_colour(path, colour):
    pixels = np.asarray(Image.open(path).convert("RGB")).astype(int)
    return bool((np.abs(pixels - np.array(colour)).max(axis=-1) <= 2).any())


BLUE, ORANGE = (0x25, 0x63, 0xA8), (0xD9, 0x48, 0x0F)


@pytest.mark.parametrize("evaluation", [None, "eval/episode_reward/mean", "eval/episode_reward"])
@pytest.mark.parametrize("episodes", [0, 1, 2, 1000])
def test_draws_what_there_is(tmp_path, episodes, evaluation):
    content = rows(range(episodes), "episode/return", np.sin(np.arange(episodes)))
    if evaluation:
        content += rows([0, 500], evaluation, [0.0, 1.0])
    if not content:
        with pytest.raises(ValueError, match=r"'episode/return' or 'eval/episode_reward'; the log has \['loss'\]"):
            plot_learning_curve(MetricsLog(rows([1], "loss", [1]), 0, 0), tmp_path / "a.png")
        return
    plot_learning_curve(MetricsLog(content, 0, 0), tmp_path / "a.png", title="a title")
    assert has_colour(tmp_path / "a.png", BLUE) == (episodes > 0)
    assert has_colour(tmp_path / "a.png", ORANGE) == (evaluation is not None)
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_numbers_that_are_not_finite_are_left_out(tmp_path):
    values = np.where(np.arange(100) % 3 == 0, np.nan, 1.0)
    content = rows(range(100), "episode/return", values)
    content += rows([0, 50], "eval/episode_reward/mean", [1.0, np.inf])
    content += rows([0, 50], "eval/episode_reward/std", [0.1, np.nan])
    plot_learning_curve(MetricsLog(content, 0, 0), tmp_path / "a.png")
    assert has_colour(tmp_path / "a.png", BLUE)


def test_running_statistics_are_those_of_the_window():
    random = np.random.default_rng(0)
    steps = np.sort(random.integers(0, 1000, 300))
    values = random.normal(size=300)
    places = np.linspace(0, 1000, 21)
    for place, found in zip(places, running_statistics(steps, values, places, 100), strict=True):
        near = values[np.abs(steps - place) <= 50]
        assert len(near) >= 5
        np.testing.assert_allclose(found, [near.mean(), np.quantile(near, 0.1), np.quantile(near, 0.9)])


def test_running_statistics_look_at_five_at_least_where_there_are_five():
    steps, values = np.arange(10) * 100, np.arange(10.0)
    mean = running_statistics(steps, values, steps.astype(float), 1)[:, 0]
    np.testing.assert_allclose(mean, [2, 2, 2, 3, 4, 5, 6, 7, 7, 7])
    np.testing.assert_allclose(running_statistics(steps[:2], values[:2], np.zeros(1), 1), [[0.5, 0.1, 0.9]])
    assert np.isnan(running_statistics(steps, np.full(10, np.nan), np.zeros(1), 1)).all()


def test_the_users_matplotlib_is_not_touched(tmp_path):
    code = f"""
import sys
from triax.runs import MetricsLog, plot_learning_curve
assert "matplotlib" not in sys.modules
rows = [{{"step": 1, "time": 0.0, "episode/return": 1.0}}]
plot_learning_curve(MetricsLog(rows, 0, 0), {str(tmp_path / "a.png")!r})
import matplotlib
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams._get_backend_or_none() is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "a.png").exists()


def test_the_legend_covers_nothing_of_what_is_drawn(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (figures.append(self), save(self, *args, **kw)))
    steps = range(0, 1000, 10)  # returns that fill the whole picture, in every corner
    content = rows(steps, "episode/return", np.tile([0.0, 1.0], 50))
    content += rows([0, 250, 500, 750, 990], "eval/episode_reward/mean", [0.5] * 5)
    content += rows([0, 250, 500, 750, 990], "eval/episode_reward/std", [0.5] * 5)
    plot_learning_curve(MetricsLog(content, 0, 0), tmp_path / "a.png")
    (figure,) = figures
    (axes,), (legend,) = figure.axes, figure.legends
    assert not legend.get_window_extent().overlaps(axes.get_tightbbox())
    assert figure.bbox.containsx(legend.get_window_extent().x0) and figure.bbox.containsx(legend.get_window_extent().x1)
