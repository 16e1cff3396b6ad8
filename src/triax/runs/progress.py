"""How far a run is: a live bar in a terminal, and a plain line now and then elsewhere."""

import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import rich.progress
    from rich.console import Console

_WINDOW = 30.0
"""Seconds over which the speed is measured."""


class Progress:
    """Context that shows steps, steps per second, the mean return and the time left.

    Args:
        total: the step at which the run is done.
        start: the step at which it begins: not 0 when resumed.
        description: what comes first in the bar and in each line.
        return_label: what the mean return is called.
        console: where to; ``None`` is the standard output. A live bar is drawn there if it is a terminal,
            else a line is written every ``plain_interval`` seconds and at the end.
        live_interval: seconds between two pictures of the bar.

    ``update`` may be called at every step: it looks at the clock and returns, unless it is time to show.

    Set the attribute ``compiled`` (``True``) to ``False`` while steps include compilation: no speed and no time left
    are told of them, and the speed is measured from the last of them on.
    """

    def __init__(
        self,
        total: int,
        *,
        start: int = 0,
        description: str = "",
        return_label: str = "return",
        console: "Console | None" = None,
        plain_interval: int | float = 10.0,
        live_interval: int | float = 0.25,
    ):
        from rich.console import Console

        self.total = total
        self.step = start
        self.mean_return: Any = None
        self.compiled = True
        self._description, self._return_label = description, return_label
        self._console = console or Console()
        live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._bar = _bar(self._console) if live else None
        self._interval = live_interval if live else plain_interval
        self._clock: Callable[[], float] = time.monotonic
        self._next = float("inf")
        self._over = False
        self._speed = _Speed()

    def __enter__(self) -> "Progress":
        now = self._clock()
        self._began = now
        self._next = now + self._interval
        self._speed.begin(now, self.step)
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self._description, total=self.total, numbers="")
            self._show(now)
        return self

    def update(self, step: int, mean_return: Any = None) -> None:
        """Tells the step and, where it is known, the mean return: a number or scalar array."""
        self.step = step
        if mean_return is not None:
            self.mean_return = mean_return  # fetched when it is shown
        now = self._clock()
        if not self.compiled:
            self._speed.begin(now, step)
        if now >= self._next:
            self._show(now)
            self._next = now + self._interval

    def __exit__(self, *exception: object) -> None:
        self._over = True
        self._next = float("inf")
        self._show(self._clock())
        if self._bar is not None:
            self._bar.stop()

    def _show(self, now: float) -> None:
        self._speed.add(now, self.step)
        numbers = " | ".join(self._numbers(now))
        if self._bar is not None:
            self._bar.update(self._task, completed=self.step, numbers=numbers)
            self._bar.refresh()
            return
        percent = f" ({100 * self.step / self.total:.0f} %)" if self.total else ""
        head = f"{self._description}: " if self._description else ""
        line = f"{head}{self.step:,} of {self.total:,} steps{percent} | {numbers}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _numbers(self, now: float) -> list[str]:
        speed = self._speed.per_second()
        parts = ["- steps/s" if speed is None else f"{speed:,.0f} steps/s"]
        if self.mean_return is not None:
            parts.append(f"{self._return_label} {float(np.asarray(self.mean_return)):.4g}")
        left = self.total - self.step
        if self._over or left <= 0 or not speed:
            return [*parts, f"{_clock_time(now - self._began)} elapsed"]
        return [*parts, f"{_clock_time(left / speed)} left"]


class _Speed:
    """Steps per second over the last half minute."""

    def __init__(self):
        self._points: deque[tuple[float, int]] = deque()

    def begin(self, now: float, step: int) -> None:
        self._points.clear()
        self._points.append((now, step))

    def add(self, now: float, step: int) -> None:
        self._points.append((now, step))
        while len(self._points) > 2 and now - self._points[1][0] >= _WINDOW:
            self._points.popleft()

    def per_second(self) -> float | None:
        (began, first), (now, last) = self._points[0], self._points[-1]
        return (last - first) / (now - began) if now > began and last > first else None


def _clock_time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _bar(console: "Console") -> "rich.progress.Progress":
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps | {task.fields[numbers]}"),
    ]
    # auto_refresh would start a thread that takes its turns from the loop's.
    return Progress(*columns, console=console, auto_refresh=False)
