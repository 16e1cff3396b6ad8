"""``help``, editors and type checkers see the parameters of every public class."""

import inspect
import json
import subprocess
import sys

import pytest

import triax

PACKAGES = (
    "experience_replay",
    "functions",
    "model_updaters",
    "policy_objectives",
    "proba_dists",
    "regularizers",
    "reward_tracing",
    "td_learning",
)
CLASSES = {
    f"{package}.{name}": value
    for package in PACKAGES
    for name in getattr(triax, package).__all__
    if inspect.isclass(value := getattr(getattr(triax, package), name))
    and not issubclass(value, tuple | Exception)
    and value.__init__ is not object.__init__
}


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_the_signature_of_a_class_is_that_of_its_constructor(cls):
    _, *parameters = inspect.signature(cls.__init__).parameters.values()
    found = list(inspect.signature(cls).parameters.values())
    assert [(p.name, p.kind, p.default) for p in found] == [(p.name, p.kind, p.default) for p in parameters]


def test_help_shows_names_and_defaults():
    assert str(inspect.signature(triax.Q)).startswith("(func: Any, env: Any, observation_preprocessor: ")
    assert list(inspect.signature(triax.td_learning.QLearning).parameters)[:3] == ["q", "pi_targ", "q_targ"]
    assert "return_logp" in str(inspect.signature(triax.Policy.__call__))


MISTAKES = """\
import triax
env, q = object(), triax.Q(object(), object())
triax.Q(object())
triax.Q(object(), env, sead=1)
q.paramz
triax.td_learning.QLearning(q, optimiser=None)
"""


@pytest.mark.slow
def test_a_type_checker_reports_wrong_arguments_and_attributes(tmp_path):
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "mistakes.py"]
    report = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    found = json.loads(report)["generalDiagnostics"]
    assert sorted(mistake["range"]["start"]["line"] for mistake in found) == [2, 3, 4, 5], report
