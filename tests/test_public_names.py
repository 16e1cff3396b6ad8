"""Public names change on purpose only, and each says what it is."""

import ast
import dataclasses
import difflib
import inspect

import pytest

from public_names import ROOT, STORED, lines, members, public_names


def test_public_names_and_signatures_are_those_that_are_stored():
    found = difflib.unified_diff(STORED.read_text().splitlines(), lines(), "stored", "now", n=0, lineterm="")
    difference = "\n".join(found)
    assert not difference, (
        f"Public names or signatures have changed:\n{difference}\n"
        "If that is meant, say so in CHANGELOG.md, and run: python tests/public_names.py"
    )


NAMES = public_names()
CLASSES = {name: value for name, value in NAMES.items() if inspect.isclass(value)}


def statements_with_docs():
    """For the body of every module and class in src: names that are assigned, and whether a docstring follows."""
    found = {}
    for path in (ROOT / "src" / "triax").rglob("*.py"):
        tree = ast.parse(path.read_text())
        for owner in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
            for statement, following in zip(owner.body, [*owner.body[1:], None], strict=True):
                if isinstance(statement, ast.Assign | ast.AnnAssign):
                    target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
                    told = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                    found.setdefault((getattr(owner, "name", None), getattr(target, "id", None)), []).append(told)
    return found


ASSIGNED = statements_with_docs()


def has_own_docstring(name, value):
    if inspect.isclass(value):
        return bool(vars(value).get("__doc__")) and not value.__doc__.startswith(f"{value.__name__}(")
    if inspect.isfunction(value):
        return bool(value.__doc__)
    return any(ASSIGNED[None, name.rpartition(".")[2]])


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_a_docstring(name):
    assert has_own_docstring(name, NAMES[name])


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_and_property_has_a_docstring(name):
    cls = CLASSES[name]
    assert [member for member in members(cls) if not inspect.getdoc(getattr(cls, member))] == []


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if name.endswith("Config")])
def test_every_field_of_a_config_says_what_it_is(name):
    fields = {field.name for field in dataclasses.fields(CLASSES[name])}
    owners = [cls.__name__ for cls in CLASSES[name].__mro__]
    assert sorted(field for field in fields if not any(any(ASSIGNED.get((cls, field), ())) for cls in owners)) == []
