import gymnasium
import pytest

from triax.envs import ConnectFourEnv, make, register_environments

NAMES = "ConnectFour-v0", "FrozenLakeNonSlippery-v0"
LEFT, DOWN, RIGHT = 0, 1, 2


@pytest.fixture(autouse=True)
def clean_registry():
    yield
    for name in NAMES:
        gymnasium.registry.pop(name, None)


def test_names_exist_only_after_registering():
    for name in NAMES:
        with pytest.raises(ValueError, match=r"Try triax\.envs\.register_environments\(\) first"):
            make(name)
    register_environments()
    assert isinstance(make("ConnectFour-v0").unwrapped, ConnectFourEnv)


def test_registering_again_is_harmless():
    register_environments()
    register_environments()
    assert gymnasium.make("ConnectFour-v0").spec.id == "ConnectFour-v0"


def test_the_lake_does_not_slip():
    register_environments()
    env = gymnasium.make("FrozenLakeNonSlippery-v0")
    assert env.spec.reward_threshold == 0.99
    env.reset(seed=0)
    steps = [env.step(a) for a in (DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT)]
    assert [step[0] for step in steps] == [4, 8, 9, 10, 14, 15]
    assert steps[-1][1:4] == (1.0, True, False)


def test_the_lake_truncates_after_twenty_steps():
    register_environments()
    env = gymnasium.make("FrozenLakeNonSlippery-v0")
    env.reset(seed=0)
    flags = [env.step(LEFT)[2:4] for _ in range(20)]
    assert flags == [(False, False)] * 19 + [(False, True)]


def test_a_name_that_another_package_holds_is_an_error_and_nothing_is_registered():
    gymnasium.register("FrozenLakeNonSlippery-v0", entry_point="elsewhere:Lake")
    with pytest.raises(ValueError, match="registered already, with the entry point elsewhere:Lake"):
        register_environments()
    assert "ConnectFour-v0" not in gymnasium.registry
