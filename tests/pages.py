"""Pages of documentation: their Python blocks, run in order in one session, and what they say is printed."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def code_blocks(page: str) -> list[str]:
    """The blocks that belong to triax; those of other libraries are fenced as ``py``."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def run(page: str) -> dict[str, Any]:
    """The names after all blocks, as a reader would have them."""
    session: dict[str, Any] = {"__name__": "a_page"}
    for number, block in enumerate(code_blocks(page)):
        exec(compile(block, f"{page}, block {number}", "exec"), session)
    return session


def promised_lines(page: str) -> list[str]:
    """What ``print(...)  # this`` says will be printed, where it is a number, a tuple or a list."""
    return re.findall(r"print\(.*\)  # ([\d(\[].*)", "".join(code_blocks(page)))
