import dataclasses

import pytest

from triax.runs import Run, RunRecord, RunRecordError

from .test_run_directory import Config


def test_a_run_records_how_far_it_came_and_each_session(tmp_path):
    with Run.create(tmp_path, Config()) as run:
        assert run.record == RunRecord("unfinished", 0, 0.0, ())
        run.begin_session(0, 100, 1.5)
        run.record_progress(40)
        run.record_progress(50, "stopped")
        first = run.record
    assert (first.state, first.step, first.total_steps) == ("stopped", 50, 100)
    assert 0 < first.seconds < 10
    with Run.resume(tmp_path, 40) as run:
        run.begin_session(40, 200)
        assert (run.record.state, run.record.step) == ("unfinished", 40)
        run.record_progress(200, "finished")
    second = Run.open(tmp_path).record
    assert [(s.from_step, s.total_steps, s.stop_at) for s in second.sessions] == [(0, 100, 1.5), (40, 200, None)]
    assert second.sessions[1].began > second.sessions[0].began > 1.6e9
    assert {"jax", "numpy", "gymnasium", "triax"} <= set(second.sessions[0].versions)
    assert second.seconds > first.seconds
    assert not second.reached_goal


def test_a_run_that_ended_early_and_is_finished_has_reached_its_goal():
    begun = RunRecord().with_session(0, 100, None)
    assert [dataclasses.replace(begun, state=state, step=50).reached_goal for state in ("finished", "stopped")] == [
        True,
        False,
    ]


def test_sessions_are_recorded_by_who_holds_the_run(tmp_path):
    Run.create(tmp_path, Config()).close()
    for record in (lambda run: run.begin_session(0, 1), lambda run: run.record_progress(1), lambda run: run.flush()):
        with pytest.raises(ValueError, match="open for reading only"):
            record(Run.open(tmp_path))


BROKEN = ["", "[]", '{"schema": 2}', '{"schema": 1}', '{"schema": 1, "record": {"class": "X"}}']


@pytest.mark.parametrize("text", BROKEN)
def test_a_record_that_cannot_be_read_is_an_error_that_names_it(tmp_path, text):
    Run.create(tmp_path, Config()).close()
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(RunRecordError, match=r"record\.json is no record of a run"):
        _ = Run.open(tmp_path).record
