"""For packages whose tests compile many small programs and run each a few times: XLA need not optimize them."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def compile_quickly():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
