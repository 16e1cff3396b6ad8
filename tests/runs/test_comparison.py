import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from triax.pictures import Curve, RunSeries, describe_spread, summarize
from triax.runs import plot_comparison


def random_runs(count, seed=0):
    random = np.random.default_rng(seed)
    return [RunSeries(np.arange(0, 1000, 100), random.normal(size=10)) for _ in range(count)]


@pytest.fixture
def figures(monkeypatch):
    from matplotlib.figure import Figure

    seen, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (seen.append(self), save(self, *args, **kw)))
    return seen


def test_each_curve_is_drawn_with_its_spread_and_single_runs_and_all_is_labelled(tmp_path, figures):
    curves = [Curve("gamma=0.9", random_runs(3)), Curve("gamma=0.99", random_runs(1, seed=1))]
    plot_comparison(curves, tmp_path / "new" / "a.png", title="dqn on X", ylabel="mean return", spread="std")
    (figure,) = figures
    (axes,), (legend,) = figure.axes, figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["gamma=0.9 (3 runs)", "gamma=0.99", describe_spread("std"), "single runs"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("environment steps", "mean return")
    drawn = [line for line in axes.lines if len(line.get_xdata())]
    assert len(drawn) == 3 + 1 + 1  # single runs of the first, and two means
    _, _, low, high = summarize(curves[0].runs, "std")
    (band,) = [path for drawn in axes.collections for path in drawn.get_paths()]
    assert (band.vertices[:, 1].min(), band.vertices[:, 1].max()) == pytest.approx((low.min(), high.max()))
    assert Image.open(tmp_path / "new" / "a.png").size[0] > 500
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["a.png"]


def test_curves_of_one_run_have_no_band_in_the_legend(tmp_path, figures):
    plot_comparison([Curve("a", random_runs(1))], tmp_path / "a.svg")
    assert [text.get_text() for text in figures[0].legends[0].get_texts()] == ["a"]
    assert (tmp_path / "a.svg").read_text().lstrip().startswith("<?xml")


def test_more_curves_than_colours_differ_in_style(tmp_path, figures):
    plot_comparison([Curve(str(k), random_runs(1, k)) for k in range(12)], tmp_path / "a.pdf")
    looks = {(line.get_color(), line.get_linestyle()) for line in figures[0].axes[0].lines}
    assert len(looks) == 12


def test_another_suffix_is_refused_before_anything_is_drawn(tmp_path):
    with pytest.raises(ValueError, match=r"a\.jpg: a picture ends in \.png, \.svg, \.pdf; got '\.jpg'"):
        plot_comparison([Curve("a", random_runs(1))], tmp_path / "a.jpg")
    assert not list(tmp_path.iterdir())


def test_the_users_matplotlib_is_not_touched(tmp_path):
    code = f"""
import sys, numpy as np
from triax.runs import Curve, RunSeries, plot_comparison
assert "matplotlib" not in sys.modules
plot_comparison([Curve("a", [RunSeries(np.arange(3), np.zeros(3))])], {str(tmp_path / "a.png")!r})
import matplotlib
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams._get_backend_or_none() is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)
