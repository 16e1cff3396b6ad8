import numpy as np
import pytest
from scipy import stats

from triax.pictures import Curve, RunSeries, draw_learning_curves, new_axes, summarize


def series(steps, values):
    return RunSeries(np.asarray(steps), np.asarray(values, float))


def random_runs(count, seed=0):
    random = np.random.default_rng(seed)
    return [series(np.arange(0, 1000, 100), random.normal(size=10)) for _ in range(count)]


def test_runs_are_compared_at_the_steps_of_all_within_what_they_have_in_common():
    runs = [series([0, 10, 20], [0, 10, 20]), series([5, 15], [1, 3])]
    steps, mean, low, high = summarize(runs, "range")
    np.testing.assert_array_equal(steps, [5, 10, 15])
    np.testing.assert_allclose(mean, [3, 6, 9])
    np.testing.assert_allclose(low, [1, 2, 3])
    np.testing.assert_allclose(high, [5, 10, 15])


def test_the_deviation_is_that_of_a_sample():
    runs = random_runs(5)
    values = np.stack([run.values for run in runs])
    _, mean, low, high = summarize(runs, "std")
    sem = stats.sem(values, axis=0) * np.sqrt(5)
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose([low, high], [mean - sem, mean + sem])


def test_the_bootstrap_interval_is_that_of_scipy():
    runs = random_runs(8)
    values = np.stack([run.values for run in runs])
    _, _, low, high = summarize(runs, "bootstrap")
    result = stats.bootstrap((values,), np.mean, axis=0, method="percentile", random_state=1, n_resamples=5000)
    np.testing.assert_allclose(low, result.confidence_interval.low, atol=0.1)
    np.testing.assert_allclose(high, result.confidence_interval.high, atol=0.1)
    np.testing.assert_array_equal(summarize(runs, "bootstrap").low, low)  # the same picture each time


@pytest.mark.parametrize("spread", ["bootstrap", "std", "range"])
def test_one_run_has_no_spread_and_runs_without_common_steps_no_mean(spread):
    (run,) = random_runs(1)
    steps, mean, low, high = summarize([run], spread)
    for found in (mean, low, high):
        np.testing.assert_array_equal(found, run.values)
    np.testing.assert_array_equal(steps, run.steps)
    assert len(summarize([series([0, 1], [0, 1]), series([5, 6], [0, 1])], spread).steps) == 0


def test_curves_are_drawn_into_the_users_axes_and_labelled_for_the_legend():
    axes, runs = new_axes(), random_runs(4)
    draw_learning_curves(axes, [Curve("mine", runs)], title="T", ylabel="y", spread="std")
    lines = {line.get_label(): line for line in axes.lines}
    values = np.stack([run.values for run in runs])
    np.testing.assert_allclose(lines["mine (4 runs)"].get_xydata(), np.stack([runs[0].steps, values.mean(0)], axis=1))
    singles = [line.get_ydata() for line in axes.lines if line.get_label().startswith("_")]
    np.testing.assert_allclose(singles, values)
    band = axes.collections[0].get_paths()[0].vertices
    deviation = stats.tstd(values, axis=0)
    for i, step in enumerate(runs[0].steps):
        at = band[band[:, 0] == step][:, 1]
        assert (at.min(), at.max()) == pytest.approx(
            (values.mean(0)[i] - deviation[i], values.mean(0)[i] + deviation[i])
        )
    assert (axes.get_title(loc="left"), axes.get_ylabel()) == ("T", "y")
    assert [text.get_text() for text in axes.legend().get_texts()] == [
        "mine (4 runs)",
        "one standard deviation",
        "single runs",
    ]
