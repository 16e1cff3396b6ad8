"""Pages of documentation: their Python blocks, run in order in one session, and what they say is printed."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MADE = {"_build", "generated"}


def all_pages() -> list[str]:
    """README, CONTRIBUTING and every page of docs/ that is not made by a build."""
    docs = [page.relative_to(ROOT) for page in sorted((ROOT / "docs").rglob("*.md"))]
    return ["README.md", "CONTRIBUTING.md", *(page.as_posix() for page in docs if not MADE & set(page.parts))]


def is_slow(page: str) -> bool:
    """Whether the page says that its blocks take long, by a comment that readers do not see."""
    return "<!-- slow -->" in (ROOT / page).read_text()


def code_blocks(page: str) -> list[str]:
    """The blocks that belong to triax; those of other libraries are fenced as ``py``."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def shell_blocks(page: str) -> list[str]:
    """The blocks of commands."""
    return re.findall(r"```bash\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def run(page: str) -> dict[str, Any]:
    """The names after all blocks, as a reader would have them."""
    session: dict[str, Any] = {"__name__": "a_page"}
    for number, block in enumerate(code_blocks(page)):
        exec(compile(block, f"{page}, block {number}", "exec"), session)
    return session


def promised_lines(page: str) -> list[str]:
    """What ``print(...)  # this`` says will be printed, where it is a number, a truth value, a tuple or a list."""
    return re.findall(r"print\(.*\)  # ([\d(\[].*|True|False)", "".join(code_blocks(page)))
