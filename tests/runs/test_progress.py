import io
import threading
import time

import jax.numpy as jnp
import pytest
from rich.console import Console

from triax.runs import Progress


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when told to."""

    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def plain(total, **options):
    stream = io.StringIO()
    return Progress(total, console=Console(file=stream), **options), lambda: stream.getvalue().splitlines()


def test_elsewhere_than_in_a_terminal_a_line_comes_every_ten_seconds_and_at_the_end(clock):
    progress, lines = plain(3500, description="DQN")
    with progress:
        for step in range(1, 3501):
            clock.now += 0.01
            progress.update(step, mean_return=jnp.float32(step / 100))
    assert lines() == [
        "DQN: 1,000 of 3,500 steps (29 %) | 100 steps/s | return 10 | 0:00:25 left",
        "DQN: 2,000 of 3,500 steps (57 %) | 100 steps/s | return 20 | 0:00:15 left",
        "DQN: 3,000 of 3,500 steps (86 %) | 100 steps/s | return 30 | 0:00:05 left",
        "DQN: 3,500 of 3,500 steps (100 %) | 100 steps/s | return 35 | 0:00:35 elapsed",
    ]


def test_a_resumed_run_counts_only_its_own_steps_in_the_speed(clock):
    progress, lines = plain(2000, start=1000)
    with progress:
        clock.now += 10
        progress.update(1500)
    assert lines()[0] == "1,500 of 2,000 steps (75 %) | 50 steps/s | 0:00:10 left"


def test_the_speed_is_that_of_the_last_half_minute(clock):
    progress, lines = plain(10**6)
    with progress:
        for _ in range(10):
            clock.now += 10
            progress.update(progress.step + 1000)
        for _ in range(4):
            clock.now += 10
            progress.update(progress.step + 10)
    assert "| 100 steps/s |" in lines()[9]
    assert "| 1 steps/s |" in lines()[13]


def test_a_run_that_stops_early_or_fails_says_how_far_it_came(clock):
    progress, lines = plain(100)
    with pytest.raises(ZeroDivisionError), progress:
        progress.update(7, mean_return=1.0)
        clock.now += 2
        raise ZeroDivisionError
    assert lines() == ["7 of 100 steps (7 %) | 4 steps/s | return 1 | 0:00:02 elapsed"]


def test_a_return_is_not_fetched_unless_it_is_shown(clock):
    class Unread:
        def __array__(self, dtype=None, copy=None):
            raise AssertionError("fetched")

    progress, _ = plain(100)
    with progress:
        for step in range(100):
            progress.update(step, mean_return=Unread())
        progress.update(100, mean_return=1.0)


def terminal(total, **options):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, _environ={})
    return Progress(total, console=console, **options), stream.getvalue


def test_in_a_terminal_there_is_a_bar_with_the_numbers(clock):
    progress, shown = terminal(1000, description="DQN")
    with progress:
        clock.now += 1
        progress.update(500, mean_return=12.5)
        assert "500 of 1,000 steps | 500 steps/s | return 12.5 | 0:00:01 left" in shown()
        assert "50%" in shown() and "DQN" in shown() and "━" in shown()
        clock.now += 1
        progress.update(1000)
    assert "1,000 of 1,000 steps | 500 steps/s | return 12.5 | 0:00:02 elapsed" in shown()
    assert "100%" in shown()


def test_the_bar_is_drawn_four_times_a_second_at_most_and_without_a_thread(clock):
    threads = threading.active_count()
    progress, shown = terminal(10**6)
    with progress:
        assert threading.active_count() == threads
        before = shown().count("\r")
        for step in range(1, 1001):
            clock.now += 0.001
            progress.update(step)
        # Four pictures of one line; each begins with a carriage return or two.
        assert 4 <= shown().count("\r") - before <= 8


def test_an_update_that_shows_nothing_takes_no_time():
    progress, _ = plain(10**9)
    with progress:
        began = time.perf_counter()
        for step in range(10_000):
            progress.update(step)
        assert (time.perf_counter() - began) / 10_000 < 1e-4  # about 2e-7 without beartype


def test_the_mean_return_may_have_another_name(clock):
    progress, lines = plain(100, return_label="average return while exploring")
    with progress:
        progress.update(50, mean_return=7)
    assert "| average return while exploring 7 |" in lines()[0]


def test_no_speed_or_time_left_is_told_until_steps_without_compilation_were_measured(clock):
    progress, lines = plain(5000)
    with progress:
        progress.compiled = False
        clock.now += 100  # compiles
        progress.update(1000)
        progress.compiled = True
        for _ in range(2):
            clock.now += 10
            progress.update(progress.step + 1000)
    assert lines()[:3] == [
        "1,000 of 5,000 steps (20 %) | - steps/s | 0:01:40 elapsed",
        "2,000 of 5,000 steps (40 %) | 100 steps/s | 0:00:30 left",
        "3,000 of 5,000 steps (60 %) | 100 steps/s | 0:00:20 left",
    ]


def test_a_run_that_ends_while_it_compiles_tells_no_speed(clock):
    progress, lines = plain(100)
    with progress:
        progress.compiled = False
        clock.now += 5
        progress.update(100)
        clock.now += 5
    assert lines() == ["100 of 100 steps (100 %) | - steps/s | 0:00:10 elapsed"]
