"""Sphinx: MyST pages whose blocks are executed, and a reference made from docstrings. ``make docs`` builds it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

from triax import __version__  # noqa: E402

project = "triax"
author = "the authors of triax"
version = release = __version__
copyright = "the authors of triax, BSD-3-Clause"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "reference",
    "differences",
    "links",
]
exclude_patterns = ["_build"]

# Pages are plain Markdown, legible where no Sphinx is; see extensions/notebooks.py.
nb_custom_formats = {".md": "notebooks.read"}
nb_execution_mode = "auto"
nb_execution_in_temp = True  # what tutorials save stays out of docs/
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_excludepatterns = [
    page.relative_to(HERE).as_posix()
    for page in HERE.rglob("*.md")
    if page.parent.name != "tutorials" and "_build" not in page.parts
]
nb_output_stderr = "remove"
nb_merge_streams = True

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = False
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True

html_theme = "sphinx_book_theme"
html_title = "triax"
html_static_path = ["_static"]
html_theme_options = {
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
}
html_copy_source = False
html_show_sourcelink = False
