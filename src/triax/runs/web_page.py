"""Pages of one file that asks no network for anything: elements, tables and files within."""

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, tostring

_POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
"""What a browser may load: nothing from elsewhere."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #f5f7fa; margin: 0; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
p { margin: .3rem 0; } .quiet { color: #616e7c; }
section > img, video { width: 100%; background: white; border: 1px solid #e4e7eb; border-radius: 6px; }
section > img.film, video { width: auto; max-width: 100%; }
table { border-collapse: collapse; background: white; border: 1px solid #e4e7eb; border-radius: 6px; }
th, td { text-align: left; padding: .2rem .9rem; border-top: 1px solid #e4e7eb; vertical-align: top; }
th { font-weight: 600; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.best td { font-weight: 600; color: #d9480f; } summary { cursor: pointer; margin: .4rem 0; }
code, td { overflow-wrap: anywhere; }
"""
_KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".gif": "image/gif", ".mp4": "video/mp4"}


def element(tag: str, *children: "Element | str", **attributes: str) -> Element:
    """An element with elements and text in it; ``class_`` stands for ``class``."""
    made = Element(tag, {name.rstrip("_"): value for name, value in attributes.items()})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif last is None:
            made.text = (made.text or "") + child
        else:
            last.tail = (last.tail or "") + child
    return made


def section(title: str, *children: "Element | str") -> Element:
    """A part of the page below its title."""
    return element("section", element("h2", title), *children)


def table(
    rows: Iterable[Sequence[str]], *, columns: Sequence[str] = (), numbers: bool = False, best: int | None = None
) -> Element:
    """A table; with ``numbers`` cells are aligned as such, and the row ``best`` stands out."""
    kind = {"class_": "number"} if numbers else {}
    head = [element("tr", *(element("th", column) for column in columns))] if columns else []
    body = [
        element("tr", *(element("td", cell, **kind) for cell in row), **({"class_": "best"} if i == best else {}))
        for i, row in enumerate(rows)
    ]
    return element("table", *head, *body)


def picture(content: bytes, suffix: str, alt: str, **attributes: str) -> Element:
    """An image that holds its file."""
    return element("img", src=_data_uri(content, suffix), alt=alt, **attributes)


def film(path: Path) -> Element:
    """A video, or a moving image, that holds its file."""
    content, suffix = path.read_bytes(), path.suffix.lower()
    if suffix == ".gif":
        return picture(content, suffix, "video of the policy", class_="film")
    return element("video", src=_data_uri(content, suffix), controls="", loop="", muted="")


def web_page(title: str, *children: Element) -> str:
    """The whole page as HTML 5."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", _STYLE),
    )
    page = element("html", head, element("body", element("main", *children)), lang="en")
    return "<!doctype html>\n" + tostring(page, encoding="unicode", method="html") + "\n"


def _data_uri(content: bytes, suffix: str) -> str:
    return f"data:{_KINDS[suffix]};base64,{base64.b64encode(content).decode()}"
