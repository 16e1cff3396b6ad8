"""What a release is made of: the wheel and the source distribution, built from this tree."""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import triax

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tracked(folder):
    """What git knows, or would take, below a folder."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {path for path in found if (ROOT / path).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Source distribution, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run([sys.executable, "-m", "build", "-o", out, ROOT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def test_the_version_is_in_one_place():
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/triax/_version.py"
    assert PROJECT["project"]["dynamic"] == ["version"] and "version" not in PROJECT["project"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", triax.__version__)
    files = [path for path in tracked("src") if path.endswith(".py")]
    assert [path for path in files if triax.__version__ in (ROOT / path).read_text()] == ["src/triax/_version.py"]


@pytest.mark.slow
def test_the_wheel_has_all_of_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        metadata = email.message_from_string(
            wheel.read(info := next(n for n in wheel.namelist() if "METADATA" in n)).decode()
        )
        scripts = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
        assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
    assert {f"src/{name}" for name in names} == tracked("src")
    assert "triax/py.typed" in names
    assert metadata["Version"] == triax.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["project"]["optional-dependencies"])
    assert scripts.split() == ["[console_scripts]", "triax", "=", "triax_command:main"]


@pytest.mark.slow
def test_the_source_distribution_has_what_git_has(built):
    with tarfile.open(built[0]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml"} <= names
    known = tracked(".") | {"PKG-INFO"}
    assert sorted(names - known) == []
    assert tracked("src") | tracked("tests") <= names


@pytest.mark.slow
def test_the_wheel_works_where_it_is_installed(built, tmp_path):
    """Beside the packages of this environment, away from the source."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "site", built[1]]
    subprocess.run(command, check=True)
    script = "import triax, triax_command, sys; print(triax.__file__); triax_command.main()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    run = [sys.executable, "-c", script, "--version"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "site" / "triax" / "__init__.py"), "triax", triax.__version__]


@pytest.mark.slow
def test_importing_triax_takes_less_than_a_second_beyond_jax():
    script = "import time, jax; began = time.process_time(); import triax; print(time.process_time() - began)"
    run = [sys.executable, "-c", script]
    seconds = [float(subprocess.run(run, capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    assert min(seconds) < 1.0
