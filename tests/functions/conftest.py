"""What a process without type checks sees."""

import json
import os
import pathlib
import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def bare_process():
    """What ``bare_script.py`` saw in a process of its own, without type checks and with flax in tree mode."""
    script = pathlib.Path(__file__).with_name("bare_script.py")
    env = {**os.environ, "NNX_GRAPH_MODE": "false"}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
