import json
import logging
import math
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from triax.runs import MetricsWriter, read_metrics


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_rows_come_back_as_they_were_logged(path):
    before = time.time()
    with MetricsWriter(path) as writer:
        writer.log(1, {"a": 1, "b": np.float32(0.5)})
        writer.log(2, {"a": jnp.float32(2.5), "c": True})
    log = read_metrics(path)
    assert [{k: v for k, v in row.items() if k != "time"} for row in log.rows] == [
        {"step": 1, "a": 1.0, "b": 0.5},
        {"step": 2, "a": 2.5, "c": 1.0},
    ]
    assert all(before <= row["time"] <= time.time() for row in log.rows)
    assert (log.torn_lines, log.superseded_rows) == (0, 0)
    assert log.names() == ["a", "b", "c"]
    steps, values = log.series("a")
    np.testing.assert_array_equal(steps, [1, 2])
    np.testing.assert_array_equal(values, [1.0, 2.5])
    assert [column.tolist() for column in log.series("nothing")] == [[], []]


def test_lines_are_standard_json_and_not_finite_numbers_survive(path):
    with MetricsWriter(path) as writer:
        writer.log(3, {"a": jnp.nan, "b": jnp.inf, "c": -math.inf})
    (line,) = path.read_text().splitlines()
    row = json.loads(line, parse_constant=lambda constant: pytest.fail(f"{constant} is not standard"))
    assert [row[name] for name in "abc"] == ["NaN", "Infinity", "-Infinity"]
    (row,) = read_metrics(path).rows
    assert math.isnan(row["a"]) and row["b"] == math.inf and row["c"] == -math.inf


def test_a_line_is_on_the_disk_as_soon_as_it_is_logged(path):
    writer = MetricsWriter(path)
    for step in range(3):
        writer.log(step, {"a": step})
        assert len(read_metrics(path).rows) == step + 1
    writer.close()


def test_results_of_a_compiled_function_can_be_logged(path):
    with MetricsWriter(path) as writer:
        writer.log(0, jax.jit(lambda x: {"sum": x.sum(), "count": x.size})(jnp.ones(3)))
    assert read_metrics(path).rows[0]["sum"] == 3.0


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"a": np.zeros(2)}, TypeError, r"metric 'a' must be a scalar, got shape \(2,\)"),
        ({"a": "x"}, TypeError, "metric 'a' must be a scalar, got str"),
        ([1.0], TypeError, "expected a mapping of names to scalars, got list"),
        ({"step": 1, "time": 2, "a": 1}, ValueError, r"\['step', 'time'\] have a meaning"),
    ],
)
def test_what_is_no_metric_is_refused_and_writes_nothing(monkeypatch, path, metrics, error, message):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with MetricsWriter(path) as writer, pytest.raises(error, match=message):
        writer.log(0, metrics)
    assert path.read_text() == ""


def test_a_closed_writer_says_so(path):
    writer = MetricsWriter(path)
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match=r"metrics\.jsonl is closed"):
        writer.log(0, {})


def test_a_torn_last_line_is_skipped_and_counted_at_every_cut(path):
    with MetricsWriter(path) as writer:
        writer.log(1, {"a": 1.0})
        writer.log(2, {"a": 2.0})
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    for cut in range(first, len(content) + 1):
        path.write_bytes(content[:cut])
        log = read_metrics(path)
        whole = cut >= len(content) - 1  # only the end of line is missing
        assert [row["step"] for row in log.rows] == ([1, 2] if whole else [1])
        assert log.torn_lines == (0 if whole or cut == first else 1)


def test_writing_on_after_a_torn_line_keeps_every_whole_row(path, caplog):
    with MetricsWriter(path) as writer:
        writer.log(1, {"a": 1.0})
        writer.log(2, {"a": 2.0})
    content = path.read_bytes()
    for cut, steps in [(5, [1, 3]), (1, [1, 2, 3]), (0, [1, 2, 3])]:
        path.write_bytes(content[: len(content) - cut])
        caplog.clear()
        with caplog.at_level(logging.WARNING), MetricsWriter(path) as writer:
            writer.log(3, {"a": 3.0})
        log = read_metrics(path)
        assert [row["step"] for row in log.rows] == steps
        assert log.torn_lines == 0
        assert ("is torn" in caplog.text) == (cut == 5)


def test_a_broken_line_in_the_middle_is_an_error_that_names_it(path):
    path.write_text('{"step": 1}\n{"step": \n{"step": 3}\n')
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 2: expected a JSON object with a step"):
        read_metrics(path)


def test_rows_after_the_step_of_a_resumption_are_superseded(path):
    with MetricsWriter(path) as writer:
        for step in (10, 20, 30, 40):
            writer.log(step, {"a": 1.0})
    with MetricsWriter(path, resume_step=20) as writer:
        writer.log(25, {"a": 2.0})
        writer.log(35, {"a": 2.0})
    log = read_metrics(path)
    assert [(row["step"], row["a"]) for row in log.rows] == [(10, 1.0), (20, 1.0), (25, 2.0), (35, 2.0)]
    assert log.superseded_rows == 2
    assert log.names() == ["a"]


def test_tensorboard_shows_the_same_numbers_and_hides_superseded_ones(tmp_path):
    for resume_step, steps in [(None, (10, 20, 30)), (20, (25, 35))]:
        with MetricsWriter(tmp_path / "metrics.jsonl", tmp_path / "tb", resume_step=resume_step) as writer:
            for step in steps:
                writer.log(step, {"a": step / 2, "b": jnp.float32(step)})
    events = EventAccumulator(str(tmp_path / "tb")).Reload()
    rows = read_metrics(tmp_path / "metrics.jsonl").rows
    for name in "ab":
        shown = [(event.step, event.value) for event in events.Scalars(name)]
        assert shown == [(row["step"], row[name]) for row in rows]


def test_a_killed_process_leaves_all_that_it_logged(path):
    code = f"""
from triax.runs import MetricsWriter
writer = MetricsWriter({str(path)!r})
step = 0
while True:
    step += 1
    writer.log(step, {{"loss": step / 3, "return": float("nan")}})
    if step % 100 == 0:
        print(step, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        reported = [int(process.stdout.readline()) for _ in range(5)][-1]
        process.send_signal(signal.SIGKILL)
        process.wait()
    log = read_metrics(path)
    assert len(log.rows) >= reported == 500
    assert [row["step"] for row in log.rows] == list(range(1, len(log.rows) + 1))
    assert all(row["loss"] == row["step"] / 3 for row in log.rows)
    assert log.torn_lines in (0, 1)
