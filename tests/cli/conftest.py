import pytest

from .running import run


@pytest.fixture(scope="session")
def strips(tmp_path_factory):
    """A folder with three runs in it: two seeds of one config, and one of another."""
    folder = tmp_path_factory.mktemp("strips")
    shared = ["train", "dqn", "cli.envs:Strip-v0", "--hidden", "4", "--total-steps", "80", "--eval-every", "20"]
    shared += ["--eval-episodes", "2", "--learning-starts", "200", "--stop-at", "inf"]
    assert run(*shared, "--run-dir", folder / "a" / "0", "--seed", 0) == 0
    assert run(*shared, "--run-dir", folder / "a" / "1", "--seed", 1) == 0
    assert run(*shared, "--run-dir", folder / "b", "--gamma", "0.5", "--checkpoint-every", "0") == 0
    return folder
