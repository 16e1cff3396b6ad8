import math
import re
import subprocess
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from triax.wrappers.tensorboard import open_tensorboard, timestamped, write_scalars


def steps(folder, tag):
    return [event.step for event in EventAccumulator(str(folder)).Reload().Scalars(tag)]


def test_folder_gets_a_subfolder_named_by_the_time_once(tmp_path):
    folder = timestamped(tmp_path / "logs")
    assert folder.parent == tmp_path / "logs"
    assert re.fullmatch(r"\d{8}_\d{6}", folder.name)
    assert timestamped(folder) == folder


def test_numbers_that_are_not_finite_are_written_without_a_warning(tmp_path, caplog):
    writer = open_tensorboard(tmp_path)
    write_scalars(writer, 3, {"a": math.nan, "b": math.inf, "c": 1.5})
    writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert math.isnan(events.Scalars("a")[0].value)
    assert events.Scalars("b")[0].value == math.inf
    assert (events.Scalars("c")[0].step, events.Scalars("c")[0].value) == (3, 1.5)
    assert caplog.records == []


def test_writers_opened_within_a_second_do_not_overwrite_each_other(tmp_path):
    for step in range(3):
        writer = open_tensorboard(tmp_path)
        write_scalars(writer, step, {"a": 0.0})
        writer.close()
    assert len(list(tmp_path.iterdir())) == 3


def test_purge_step_hides_what_came_after_it(tmp_path):
    writer = open_tensorboard(tmp_path)
    for step in range(5):
        write_scalars(writer, step, {"a": 0.0})
    writer.close()
    writer = open_tensorboard(tmp_path, purge_step=3)
    write_scalars(writer, 3, {"a": 1.0})
    writer.close()
    assert steps(tmp_path, "a") == [0, 1, 2, 3]


def test_a_closed_writer_is_refused(tmp_path):
    writer = open_tensorboard(tmp_path)
    writer.close()
    with pytest.raises(ValueError, match="is closed"):
        write_scalars(writer, 0, {"a": 0.0})


def test_importing_the_wrappers_imports_no_tensorboard():  # F86
    code = "import sys, triax.wrappers, triax.envs; print('tensorboardX' in sys.modules, 'PIL' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]
