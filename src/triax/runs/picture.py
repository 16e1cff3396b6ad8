"""How pictures of runs look, and how they are written without touching pyplot or the backend of matplotlib."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, BLUE, ORANGE = "#1f2933", "#7b8794", "#2563a8", "#d9480f"
PALETTE = (BLUE, ORANGE, "#2b8a3e", "#862e9c", "#0b7285", "#a61e4d", "#5f3dc4", "#7f4f24")
SUFFIXES = (".png", ".svg", ".pdf")


def check_picture_path(path: str | os.PathLike) -> None:
    """``ValueError`` for a suffix that is none of a picture."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: a picture ends in {', '.join(SUFFIXES)}; got {Path(path).suffix!r}.")


def new_axes() -> "Axes":
    """Axes on a figure of their own."""
    from matplotlib.figure import Figure

    return Figure(figsize=(8.0, 4.5), dpi=150, layout="constrained").subplots()


def dress(axes: "Axes", *, title: str, ylabel: str = "return", columns: int = 4) -> None:
    """Titles, grid and legend of a curve over environment steps."""
    from matplotlib.ticker import EngFormatter

    axes.set_title(title, loc="left", color=INK, fontsize=12, fontweight="bold")
    axes.set_xlabel("environment steps", color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=GREY, labelcolor=INK)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.02)
    # Below the axes, where it covers nothing: "best" does not see the bars of evaluations.
    legend = {"ncols": columns, "frameon": False, "fontsize": 9, "labelcolor": INK, "markerscale": 1.5}
    axes.figure.legend(loc="outside lower center", **legend)


def write_picture(axes: "Axes", path: str | os.PathLike) -> None:
    """The figure of the axes as a file, in the format of its suffix; readers see the old one or all of the new one."""
    figure: Figure = axes.figure  # pyright: ignore[reportAssignmentType]: no subfigures here
    check_picture_path(path)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    figure.savefig(temporary, format=path.suffix[1:].lower())
    os.replace(temporary, path)
