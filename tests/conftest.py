"""All of triax runs under beartype here: annotations are checked, shapes included. Programs are compiled quickly."""

import warnings

import jax
import pytest
from beartype.roar import BeartypeDecorHintPep585DeprecationWarning
from jaxtyping import install_import_hook

warnings.filterwarnings("ignore", category=BeartypeDecorHintPep585DeprecationWarning)  # Gymnasium's own hints
install_import_hook("triax", "typechecker.typecheck")

# Tests compile many small programs and run each a few times: XLA need not optimize them.
jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True)
def optimized_if_slow(request):
    """Long runs are worth it."""
    slow = request.node.get_closest_marker("slow") is not None
    jax.config.update("jax_disable_most_optimizations", not slow)
    yield
    jax.config.update("jax_disable_most_optimizations", True)
