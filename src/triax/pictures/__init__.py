"""Pictures of what learns and of what was learned: each function draws arrays or a network into matplotlib axes.

Pass axes of your own, or those of :func:`new_axes`, which :func:`write_picture` makes a file of without pyplot.
"""

from triax.pictures.activations import draw_activations, plot_activations
from triax.pictures.curves import Curve, RunSeries, Summary, describe_spread, draw_learning_curves, summarize
from triax.pictures.graphs import draw_graph
from triax.pictures.grids import LEFT_DOWN_RIGHT_UP, draw_policy, draw_values, tabulate
from triax.pictures.style import check_picture_path, new_axes, write_picture

__all__ = [
    "LEFT_DOWN_RIGHT_UP",
    "Curve",
    "RunSeries",
    "Summary",
    "check_picture_path",
    "describe_spread",
    "draw_activations",
    "draw_graph",
    "draw_learning_curves",
    "draw_policy",
    "draw_values",
    "new_axes",
    "plot_activations",
    "summarize",
    "tabulate",
    "write_picture",
]
