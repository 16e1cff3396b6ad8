import subprocess
import sys

import gymnasium
import pytest

from triax.core import MissingExtraError
from triax.envs import make


def test_gymnasium_ids_make_gymnasium_environments():
    env = make("CartPole-v1", max_episode_steps=7)
    assert isinstance(env, gymnasium.Env) and env.spec.max_episode_steps == 7


def test_two_calls_give_two_environments_with_their_own_arguments():  # F88
    one, two = make("CartPole-v1", max_episode_steps=7), make("CartPole-v1", max_episode_steps=9)
    assert (one.spec.max_episode_steps, two.spec.max_episode_steps) == (7, 9)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("gymnax:CartPole-v1", "gymnax", "gymnax"),
        ("brax:ant", "brax", "mujoco"),
        ("playground:CartpoleBalance", "mujoco_playground", "mujoco"),
    ],
)
def test_a_package_that_is_not_installed_names_the_extra(monkeypatch, name, package, extra):
    for module in [module for module in sys.modules if module.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"make\('{name}'\) needs the package.*pip install 'triax\[{extra}\]'"):
        make(name)


def test_an_unknown_id_is_gymnasiums_error():
    with pytest.raises(gymnasium.error.NameNotFound):
        make("NoSuchEnvironment-v0")


def test_importing_triax_registers_nothing_and_imports_no_extra():  # F84, F86
    program = (
        "import sys, gymnasium; before = dict(gymnasium.registry); import triax.envs, triax.wrappers;"
        "assert dict(gymnasium.registry) == before; triax.envs.ConnectFourEnv;"
        "assert not {'gymnax', 'brax', 'mujoco_playground', 'dm_control', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
