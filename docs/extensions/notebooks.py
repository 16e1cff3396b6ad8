"""Plain Markdown as a notebook: each block that is fenced as ``python`` is a cell.

So a page is the same to a reader on GitHub, to the tests (``tests/pages.py``) and to this documentation.
"""

import re

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def read(text: str) -> nbformat.NotebookNode:
    """The notebook of a page."""
    cells, end = [], 0
    for number, block in enumerate(BLOCK.finditer(text)):
        cells.append(new_markdown_cell(text[end : block.start()], id=f"text-{number}"))
        cells.append(new_code_cell(block.group(1).rstrip(), id=f"code-{number}"))
        end = block.end()
    cells.append(new_markdown_cell(text[end:], id="text-last"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})
