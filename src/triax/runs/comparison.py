"""The picture of several runs as a file."""

import os
from collections.abc import Sequence

from triax.pictures import Curve, check_picture_path, draw_learning_curves, new_axes, write_picture
from triax.pictures.curves import Spread
from triax.pictures.style import put_legend_below


def plot_comparison(
    curves: Sequence[Curve],
    path: str | os.PathLike,
    *,
    title: str = "",
    ylabel: str = "return",
    spread: Spread = "bootstrap",
) -> None:
    """Writes what :func:`~triax.pictures.draw_learning_curves` draws, with a legend.

    ``path`` ends in ``.png``, ``.svg`` or ``.pdf``, else ``ValueError``. The pyplot state and the backend of
    matplotlib are not touched.
    """
    check_picture_path(path)
    axes = new_axes()
    draw_learning_curves(axes, curves, title=title, ylabel=ylabel, spread=spread)
    longest = max(len(curve.label) for curve in curves)
    put_legend_below(axes, columns=max(1, min(4, 100 // (longest + 12))))
    write_picture(axes, path)
