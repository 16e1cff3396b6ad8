"""Every Python block of README and docs/ runs, in the order of its page, as a reader would type it.

A page that is added is covered. Its blocks take long? Then ``<!-- slow -->`` on the page makes this test a slow one. It
makes further claims? Then a test module with ``PAGE = "docs/..."`` runs it and tests them instead.
"""

import re

import pytest

from pages import ROOT, all_pages, code_blocks, is_slow, promised_lines, run

OTHER_TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
TESTED_THERE = set(re.findall(r'^PAGE = "(.*)"$', OTHER_TESTS, flags=re.MULTILINE))
TESTED_HERE = [page for page in all_pages() if code_blocks(page) and page not in TESTED_THERE]


def test_pages_with_tests_of_their_own_exist():
    assert set(all_pages()) >= TESTED_THERE


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] if is_slow(page) else []) for page in TESTED_HERE]
)
def test_the_blocks_of_a_page_run_and_print_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(page)
    promised, printed = promised_lines(page), capsys.readouterr().out.splitlines()
    assert [line for line in printed if line in promised] == promised


@pytest.mark.parametrize("page", all_pages())
def test_blocks_are_python_shell_or_of_another_library(page):
    """A block without a language, or of one that is misspelt, would never be run."""
    fences = re.findall(r"^```(.*)$", (ROOT / page).read_text(), flags=re.MULTILINE)
    opening = fences[::2]
    known = {"python", "py", "bash", "sh", "text", "toml", "json"}
    assert [language for language in opening if language not in known and not language.startswith("{")] == []
