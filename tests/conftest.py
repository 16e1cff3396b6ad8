"""All of triax runs under beartype here: annotations are checked, shapes included. Programs are compiled quickly."""

import os
import signal
import warnings

import jax
from beartype.roar import BeartypeDecorHintPep585DeprecationWarning
from jaxtyping import install_import_hook

warnings.filterwarnings("ignore", category=BeartypeDecorHintPep585DeprecationWarning)  # Gymnasium's own hints
install_import_hook("triax", "typechecker.typecheck")

QUICKLY_EMITTED = "--xla_cpu_use_fusion_emitters=false"  # a third less time in the compiler


def pytest_configure(config):
    """Without slow tests XLA need not optimize: there are many small programs, and each runs a few times.

    The variable is for processes that tests start, whose results are compared bit for bit.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "not slow" in config.getoption("markexpr"):
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
        if jax.__version_info__ < (0, 11):  # jaxlib 0.12 ends the process at flags that it does not know
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICKLY_EMITTED}"
        jax.config.update("jax_disable_most_optimizations", True)
