"""The pages of docs/ tell the truth: names exist, links lead somewhere, commands are understood."""

import importlib
import re
import tomllib

import pytest

from pages import ROOT, all_pages, shell_blocks
from triax.cli import main

PAGES = [ROOT / page for page in all_pages()]
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


SHELL = "".join(block for page in all_pages() for block in shell_blocks(page))
COMMANDS = sorted(set(re.findall(r"^triax (?!--)(.*?) *(?:#.*)?$", SHELL, flags=re.MULTILINE)))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_on_a_page_is_understood(command, monkeypatch):
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


@pytest.mark.parametrize("page", [page for page in PAGES if "\n```{differences}" in page.read_text()], ids=str)
def test_a_page_whose_table_is_only_built_says_in_markdown_where_it_is(page):
    before = page.read_text().partition("\n```{differences}")[0].rpartition("\n## ")[2]
    assert "The built page (`make docs`) has the table" in before
    assert "(differences.toml) beside this page" in before and (page.parent / "differences.toml").exists()


EXTRA_OF = {"gymnax": "gymnax", "brax": "mujoco", "playground": "mujoco"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if re.search(r"\b(gymnax|brax|playground):\w", page.read_text())]
)
def test_where_an_environment_of_an_optional_package_is_named_its_extra_is_beside_it(page):
    for paragraph in page.read_text().split("\n\n"):
        for prefix in set(re.findall(r"\b(gymnax|brax|playground):\w", paragraph)):
            rest = paragraph.replace("`", "").replace("\n", " ")
            assert re.search(rf"extras? .*\b{EXTRA_OF[prefix]}\b|triax\[{EXTRA_OF[prefix]}\]", rest), paragraph
