"""The pages of docs/ tell the truth: names exist, links lead somewhere, blocks run."""

import importlib
import re
import tomllib

import pytest

from pages import ROOT, run
from triax.cli import main

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LOGGERS = {"triax.TrainMonitor"}


def exists(dotted):
    """Whether a dotted name is that of a module, or of something in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def on_page(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=on_page)
def test_every_name_of_triax_on_a_page_exists(page):
    names = set(re.findall(r"\btriax(?:\.[A-Za-z_]\w*)+", page.read_text())) - LOGGERS
    assert [name for name in sorted(names) if not exists(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=on_page)
def test_every_link_leads_to_a_file_or_a_heading(page):
    text = page.read_text()
    links = re.findall(r"\]\(([^):]+)\)", text)
    headings = {
        f"#{line.lstrip('# ').lower().replace(' ', '-')}" for line in text.splitlines() if line.startswith("##")
    }
    assert [link for link in links if link not in headings and not (page.parent / link.split("#")[0]).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=on_page)
def test_pages_stand_on_their_own(page):
    assert not re.search(r"\bF\d+\b|\.\./shared|contracts/", page.read_text())


@pytest.mark.parametrize("name", ["from-coax.md", "from-nnx-ppo.md"])
def test_the_new_programs_of_the_migration_pages_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(f"docs/migrating/{name}")
    assert names["buffer"] if "buffer" in names else names["result"].total_steps == 640


SHELL = "".join(re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL))
COMMANDS = re.findall(r"^triax (.*?) *(?:#.*)?$", SHELL, flags=re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_is_understood(command, monkeypatch):
    monkeypatch.setattr(importlib.import_module("triax.cli.main"), "_run", lambda parsed: 0)
    with pytest.raises(SystemExit) as end:
        main(command.split())
    assert end.value.code == 0


def test_differences_have_reasons_that_a_reader_without_other_files_understands():
    text = (ROOT / "docs" / "migrating" / "differences.toml").read_text()
    assert not re.search(r"\bF\d+\b|\.\./", text)
    for name, entry in tomllib.loads(text).items():
        assert name.startswith("triax.") and set(entry) == {"reason"} and entry["reason"].endswith("."), name
        named = set(re.findall(r"\btriax(?:\.[A-Za-z_]\w*)+", entry["reason"])) - LOGGERS
        assert all(map(exists, named)), (name, named)
