"""These tests compile hundreds of small programs, and run each a few times: XLA need not optimize them."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def _compile_fast():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="session")
def bare_process():
    """What ``bare_script.py`` saw in a process of its own, without type checks and with flax in tree mode."""
    script = pathlib.Path(__file__).with_name("bare_script.py")
    env = {**os.environ, "NNX_GRAPH_MODE": "false"}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
