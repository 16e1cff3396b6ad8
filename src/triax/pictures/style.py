"""How pictures look, and how they are written without touching pyplot or the backend of matplotlib."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, PALE, BLUE, ORANGE = "#1f2933", "#7b8794", "#e4e7eb", "#2563a8", "#d9480f"
PALETTE = (BLUE, ORANGE, "#2b8a3e", "#862e9c", "#0b7285", "#a61e4d", "#5f3dc4", "#7f4f24")
SUFFIXES = (".png", ".svg", ".pdf")


def check_picture_path(path: str | os.PathLike) -> None:
    """``ValueError`` for a suffix that is none of a picture."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: a picture ends in {', '.join(SUFFIXES)}; got {Path(path).suffix!r}.")


def new_axes(width: float = 8.0, height: float = 4.5) -> "Axes":
    """Axes on a figure of their own, in inches; ``write_picture(axes, path)`` makes a file of it."""
    return new_figure(width, height).subplots()


def new_figure(width: float, height: float) -> "Figure":
    """A figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def title_axes(axes: "Axes", title: str, size: int = 12) -> None:
    """A title above the left end, so many points high."""
    axes.set_title(title, loc="left", color=INK, fontsize=size, fontweight="bold")


def dress(axes: "Axes", *, title: str = "", ylabel: str = "return") -> None:
    """Titles and grid of a curve over environment steps."""
    from matplotlib.ticker import EngFormatter

    title_axes(axes, title)
    axes.set_xlabel("environment steps", color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=GREY, labelcolor=INK)
    axes.grid(axis="y", color=PALE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.02)


def put_legend_below(axes: "Axes", columns: int = 4) -> None:
    """The legend of a figure from :func:`new_axes`, where it covers nothing: "best" does not see bars and bands."""
    look: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9, "labelcolor": INK, "markerscale": 1.5}
    axes.figure.legend(loc="outside lower center", **look)


def write_picture(axes: "Axes", path: str | os.PathLike) -> None:
    """The figure of the axes as a file, in the format of its suffix; its folders are made.

    Readers see the old file or all of the new one. Raises as :func:`check_picture_path`.
    """
    check_picture_path(path)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    _figure_of(axes).savefig(temporary, format=path.suffix[1:].lower())
    os.replace(temporary, path)


def picture_bytes(axes: "Axes", form: str = "svg") -> bytes:
    """The figure of the axes as a file's content, the same for the same drawing; ``form`` as a suffix without dot."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "triax"}):  # else names in it are drawn by chance
        _figure_of(axes).savefig(content, format=form, metadata={"Date": None} if form == "svg" else None)
    return content.getvalue()


def _figure_of(axes: "Axes") -> "Figure":
    figure: Figure = axes.figure  # pyright: ignore[reportAssignmentType]: no subfigures here
    return figure
