import math
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from triax.core.debugging import no_number
from triax.loops.episodes import Episodes

SCRIPT = """
import gymnasium, jax.numpy as jnp, optax, triax
from flax import nnx

class Network(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, S, is_training):
        return jnp.log(self.layer(S) - 1e9)  # the culprit

q = triax.Q(Network, gymnasium.make("CartPole-v1"), random_seed=0)
print("answer", q(q.observation_space.sample()))
"""


def run_script(tmp_path, value):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    environment = {**os.environ, "TRIAX_DEBUG_NANS": value}
    return subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True)


def test_the_first_nan_raises_and_the_traceback_has_the_line_that_made_it(tmp_path):
    done = run_script(tmp_path, "1")
    assert done.returncode == 1
    assert "FloatingPointError: invalid value (nan) encountered in log" in done.stderr
    assert "# the culprit" in done.stderr


def test_without_it_nothing_is_configured(tmp_path):
    done = run_script(tmp_path, "0")
    assert done.returncode == 0, done.stderr
    assert "answer [nan nan]" in done.stdout


def test_that_no_episode_has_ended_is_no_nan_to_hunt():
    report = lambda: Episodes.begin(2).report()[0]  # noqa: E731
    assert math.isnan(jax.jit(report)()["return"]) and math.isnan(no_number())
    with jax.debug_nans(True):
        assert no_number() == -math.inf
        assert jax.jit(lambda: report())()["return"] == -math.inf
        with pytest.raises(FloatingPointError):
            jax.jit(lambda: jnp.zeros(()) / 0)()
