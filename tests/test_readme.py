"""Every Python block of the README runs, in order, in one session, as a reader would type them."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_the_readme_has_blocks():
    assert len(BLOCKS) >= 3


def test_every_block_runs():
    session = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README block {number}", "exec"), session)
    assert session["env"].observation_space.contains(session["s"])
    assert len(session["steps"]) == 16
