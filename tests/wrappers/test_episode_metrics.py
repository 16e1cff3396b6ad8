import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.wrappers.episode_metrics import EpisodeMetrics


class Unread:
    """A scalar that tells when it is fetched."""

    def __init__(self, value, fetched):
        self.value, self.fetched = value, fetched

    def __float__(self):
        raise AssertionError("fetched one by one")

    def __array__(self, dtype=None, copy=None):
        self.fetched.append(self.value)
        return np.asarray(self.value, dtype)


def test_averages_are_means_by_name():
    metrics = EpisodeMetrics()
    metrics.record({"a": 1, "b": np.float32(2.0)})
    metrics.record({"a": jnp.int32(4)})
    metrics.record({"a": jnp.float32(4.0), "c": True})
    assert metrics.averages() == {"a": 3.0, "b": 2.0, "c": 1.0}
    assert metrics.averages() == {"a": 3.0, "b": 2.0, "c": 1.0}
    metrics.clear()
    assert metrics.averages() == {}


def test_recording_fetches_nothing_until_the_averages_are_read():
    metrics, fetched = EpisodeMetrics(), []
    for value in range(100):
        metrics.record({"a": Unread(value, fetched)})
    assert fetched == []
    assert metrics.averages() == {"a": np.mean(range(100))}
    assert fetched == list(range(100))


def test_what_is_held_unread_is_bounded_and_the_latest_records_stay_unread():
    metrics, fetched = EpisodeMetrics(), []
    for value in range(5000):
        metrics.record({"a": Unread(value, fetched)})
        assert value + 1 - len(fetched) <= 1024
        assert not fetched or value - fetched[-1] >= 64
    assert metrics.averages() == {"a": np.mean(range(5000))}


def test_the_caller_may_reuse_its_dict():
    metrics, mine = EpisodeMetrics(), {"a": 1.0}
    metrics.record(mine)
    mine["a"] = 100.0
    assert metrics.averages() == {"a": 1.0}


def test_results_of_a_compiled_function_may_be_recorded_before_they_are_ready():
    metrics = EpisodeMetrics()
    step = jax.jit(lambda x: {"loss": (x @ x).sum()})
    for scale in (1.0, 3.0):
        metrics.record(step(jnp.full((4, 4), scale)))
    assert metrics.averages() == {"loss": pytest.approx((64 + 9 * 64) / 2)}


def test_state_continues_the_averages():
    metrics, other = EpisodeMetrics(), EpisodeMetrics()
    for value in (1.0, 2.0):
        metrics.record({"a": value})
    other.set_state(metrics.get_state())
    other.record({"a": 6.0})
    assert other.averages() == {"a": 3.0}
