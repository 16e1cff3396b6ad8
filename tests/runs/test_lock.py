import os
import signal
import subprocess
import sys

import pytest

from triax.runs import Run, RunInUseError, is_in_use
from triax.runs.lock import FolderLock

from .test_run_directory import Config

HOLD = """
import sys, time, pathlib
from triax.runs.lock import FolderLock
lock = FolderLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_folder_is_held_by_one_until_its_process_is_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    assert is_in_use(tmp_path)
    with pytest.raises(RunInUseError, match="another process is training this run"):
        FolderLock(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    assert not is_in_use(tmp_path)


def test_a_run_is_held_by_who_writes_to_it(tmp_path):
    with Run.create(tmp_path, Config()) as run:
        run.log(1, {"a": 1.0})
        for begin in (lambda: Run.create(tmp_path, Config(), overwrite=True), lambda: Run.resume(tmp_path, 0)):
            with pytest.raises(RunInUseError):
                begin()
        assert len(Run.open(tmp_path).read_metrics().rows) == 1
    Run.resume(tmp_path, 1).close()
    assert not is_in_use(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []
