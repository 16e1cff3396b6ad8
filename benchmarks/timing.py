"""Timing in interleaved rounds, the median of each: of calls that take microseconds, and of compiled loops."""

import math
import statistics
import time
from collections.abc import Callable

import jax
from rich.console import Console
from rich.table import Table

Programs = dict[str, tuple[Callable, Callable]]
"""By name ``(init, run)``: ``init(key)`` gives a state, ``run(state, iterations)`` the next one and metrics."""


def iterations_per_second(programs: Programs, iterations: int, *, rounds: int = 7) -> dict[str, float]:
    """The median over rounds that take turns, so that drift of the machine hits all alike; compilation is left out."""
    states = {name: init(jax.random.key(0)) for name, (init, _) in programs.items()}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for round_ in range(rounds + 1):
        for name, (_, run) in programs.items():
            began = time.perf_counter()
            states[name], metrics = run(states[name], iterations)
            jax.block_until_ready((states[name], metrics))
            if round_:  # the first compiles
                times[name].append(time.perf_counter() - began)
    return {name: iterations / statistics.median(taken) for name, taken in times.items()}


def microseconds(calls: dict[str, Callable], *, rounds: int = 15, seconds_per_round: float = 0.03) -> dict[str, float]:
    """The median time of each call over rounds that take turns, so that drift of the machine hits all alike."""
    counts = {}
    for name, call in calls.items():
        for _ in range(20):
            call()
        began = time.perf_counter()
        for _ in range(20):
            call()
        counts[name] = max(5, int(20 * seconds_per_round / (time.perf_counter() - began)))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(counts[name]):
                call()
            samples[name].append((time.perf_counter() - began) / counts[name])
    return {name: 1e6 * statistics.median(times) for name, times in samples.items()}


class Report:
    """A table of measurements beside their floors and budgets."""

    def __init__(self, title: str) -> None:
        self._table = Table("call", "time (us)", "floor (us)", "ratio", "budget", "", title=title)
        self._table.columns[0].no_wrap = True
        self.failed: list[str] = []

    def ratio(self, name: str, call: Callable, floor: Callable, *, at_most: float = math.inf) -> None:
        """Measure a call against its floor; without a budget for orientation only."""
        times = microseconds({"call": call, "floor": floor})
        ratio = times["call"] / times["floor"]
        budget = "" if at_most == math.inf else f"<= {at_most} x"
        self._row(name, times["call"], f"{times['floor']:.1f}", f"{ratio:.2f}", budget, ratio <= at_most)

    def absolute(self, name: str, call: Callable, *, at_most: float) -> None:
        """Measure a call against a number of microseconds."""
        (elapsed,) = microseconds({"call": call}).values()
        self._row(name, elapsed, "", "", f"< {at_most} us", elapsed < at_most)

    def _row(self, name: str, elapsed: float, floor: str, ratio: str, budget: str, ok: bool) -> None:
        if not ok:
            self.failed.append(name)
        verdict = ("ok" if ok else "MISSED") if budget else ""
        self._table.add_row(name, f"{elapsed:.1f}", floor, ratio, budget, verdict)

    def show(self) -> None:
        """Print the table."""
        Console(width=110).print(self._table)
