from pathlib import Path

import pytest
import ray


@pytest.fixture(scope="session")
def cluster():
    """Ray in this process, started once. Its processes find the modules of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        ray.init(
            num_cpus=8,
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
    yield
    ray.shutdown()
