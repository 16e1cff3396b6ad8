"""For tests that compile many small programs and run each a few times: XLA need not optimize them."""

from typing import Literal

import jax
import pytest


def _compiling_quickly(scope: Literal["package", "module"]):
    @pytest.fixture(autouse=True, scope=scope)
    def quickly():
        before = jax.config.read("jax_disable_most_optimizations")
        jax.config.update("jax_disable_most_optimizations", True)
        yield
        jax.config.update("jax_disable_most_optimizations", before)

    return quickly


compile_quickly = _compiling_quickly("package")
compile_module_quickly = _compiling_quickly("module")
