"""What ``triax`` exports under a module's name can be imported as a module, as users of it write."""

import importlib
import subprocess
import sys
import types

import pytest

import triax

MODULES = sorted(name for name in triax.__all__ if isinstance(getattr(triax, name), types.ModuleType))


def test_the_familiar_modules_are_there():
    assert {"value_losses", "value_transforms", "utils", "td_learning", "typing"} <= set(MODULES)
    assert {"agents", "algorithms", "envs", "loops", "networks", "runs"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_among_the_exports_has_that_import_path(name):
    assert importlib.import_module(f"triax.{name}") is getattr(triax, name)


@pytest.mark.parametrize("name", ["value_losses", "value_transforms"])
def test_the_names_of_the_familiar_modules_are_those_of_their_homes(name):
    module, home = getattr(triax, name), importlib.import_module(f"triax.losses.{name}")
    for attribute in module.__all__:
        assert getattr(module, attribute) is getattr(home, attribute)


def test_they_can_be_imported_first():
    script = "from triax.value_losses import huber; import triax.value_transforms; import triax; triax.value_losses.mse"
    subprocess.run([sys.executable, "-c", script], check=True)


OPTIONAL_OR_SLOW = {"haiku", "imageio", "matplotlib", "orbax", "PIL", "tensorboardX", "tyro", "wandb"}


def test_importing_triax_imports_nothing_that_only_some_calls_need():
    script = "import sys, triax; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert not OPTIONAL_OR_SLOW & set(found)


def test_a_name_asked_of_the_wrong_module_is_told_its_own():
    with pytest.raises(AttributeError, match=r"Use triax\.agents\.PPOAgent"):
        triax.PPOAgent
    with pytest.raises(AttributeError, match=r"Use triax\.networks\.LSTM"):
        triax.LSTM
