"""The code blocks of docs/tutorials/own_module.md run, and what they build obeys the laws."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from pages import promised_lines, run

from .laws import BATCH, TIME, Pure, assert_trees_close, assert_unroll_equals_stepping, normals, random_resets

PAGE = "docs/tutorials/own_module.md"


@pytest.fixture(scope="module")
def built() -> dict[str, Any]:
    """The names that the page defines."""
    return run(PAGE)


def test_the_page_prints_the_shapes_that_it_says(capsys):
    run(PAGE)
    promised = promised_lines(PAGE)
    assert capsys.readouterr().out.splitlines() == promised and len(promised) == 2


def test_the_module_averages_and_starts_anew(built):
    net, xs = built["RunningAverage"](1), jnp.array([1.0, 2.0, 4.0])[:, None, None]
    out = net.unroll(net.initialize_state(1), xs, jnp.array([[0], [0], [1]], bool))
    np.testing.assert_allclose(out.output[:, 0, 0], [0.5, 1.25, 2.0])


def test_module_and_container_obey_the_laws(built):
    xs, resets = normals(0, TIME, BATCH, 3), random_resets(0)
    assert_unroll_equals_stepping(Pure(built["net"]), xs, resets)
    slow, fast = Pure(built["RunningAverage"](3)), Pure(built["FastAverage"](3))
    state = normals(1, BATCH, 3)
    assert_trees_close(fast.unroll(state, xs, resets), slow.unroll(state, xs, resets))
