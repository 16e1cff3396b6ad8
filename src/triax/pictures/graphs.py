"""Networks of populations, drawn from their inputs on the left to their outputs on the right."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from triax.networks.graph import Population, PopulationGraph
from triax.networks.graph.parts import Edge, components
from triax.pictures.style import BLUE, GREY, INK, ORANGE, title_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREEN = "#2b8a3e"
_STEP, _BEND, _FONT = 1.8, 0.25, 9
"""Between columns, where there is 1 between rows; how much arrows bend that do not lead to the next column."""


def lay_out(graph: PopulationGraph) -> dict[str, tuple[float, float]]:
    """Where each population is drawn, as ``(x, y)``: connections lead to the right, save those that close a loop."""
    columns: dict[str, int] = {}
    for name in _in_order(graph):
        before = [columns[edge.src] for edge in graph.edges if edge.dst == name and edge.src in columns]
        columns[name] = 1 + max(before, default=-1)
    last = max(columns.values(), default=0)
    for node in graph.populations:
        if node.output_to is not None and node.input_from is None and not _feeds(graph, node.name):
            columns[node.name] = last
    places = {}
    for column in set(columns.values()):
        members = [name for name in columns if columns[name] == column]
        for i, name in enumerate(members):
            places[name] = (_STEP * column, (len(members) - 1) / 2 - i)
    return places


def _in_order(graph: PopulationGraph) -> list[str]:
    """Groups that reach each other one after another; inside of one, first what does not wait for a delay."""
    names = [node.name for node in graph.populations]
    inputs = {node.name for node in graph.populations if node.input_from is not None}
    order: list[str] = []
    for group in components(names, graph.edges):
        waiting = list(group)
        while waiting:
            fed = [n for n in waiting if n in inputs or any(e.dst == n and e.src in order for e in graph.edges)]
            at_once = [n for n in fed if not any(e.dst == n and e.src in waiting and not e.delay for e in graph.edges)]
            chosen = (at_once or fed or waiting)[0]
            waiting.remove(chosen)
            order.append(chosen)
    return order


def _feeds(graph: PopulationGraph, name: str) -> bool:
    return any(edge.src == name and edge.dst != name for edge in graph.edges)


def draw_graph(axes: "Axes", graph: PopulationGraph, *, title: str = "") -> None:
    """Draws a box for each population with its size and activation, and an arrow for each connection with its delay.

    Inputs are blue, outputs orange, both green; an arrow with a delay is dashed and says how many steps.
    """
    at = lay_out(graph)
    places = {node.name: _Place(*at[node.name], describe_population(node)) for node in graph.populations}
    for node in graph.populations:
        _draw_node(axes, node, places[node.name])
    drawn: list[tuple[str, str]] = []
    for edge in graph.edges:
        ends = edge.src, edge.dst
        _draw_edge(axes, edge, (places[edge.src], places[edge.dst]), drawn.count(ends))
        drawn.append(ends)
    x, y = np.array(list(at.values()) or [(0.0, 0.0)]).T
    axes.set_xlim(x.min() - 0.8, x.max() + 0.8)
    axes.set_ylim(y.min() - 0.9, y.max() + 0.9)
    axes.set_aspect("equal")  # so that an arrow bends in the data as it does on paper
    axes.set_axis_off()
    title_axes(axes, title)


def describe_population(node: Population) -> str:
    """Its name, and below it how many units it has and what they do."""
    activation = getattr(node.activation, "__name__", type(node.activation).__name__) if node.activation else "linear"
    return f"{node.name}\n{node.size} {activation}"


class _Place(NamedTuple):
    """Where a population stands, and what its box says."""

    x: float
    y: float
    text: str

    def clearance(self, direction: np.ndarray) -> float:
        """Points from the middle of the box to its edge."""
        width = _FONT * 0.32 * max(map(len, self.text.split("\n"))) + 8
        height = _FONT * 0.65 * len(self.text.split("\n")) + 8
        right, up = np.abs(direction) / np.hypot(*direction)
        return float(min(width / max(right, 1e-6), height / max(up, 1e-6)))


def _draw_node(axes: "Axes", node: Population, place: _Place) -> None:
    comes_in, goes_out = node.input_from is not None, node.output_to is not None
    colour = {(True, False): BLUE, (False, True): ORANGE, (True, True): _GREEN}.get((comes_in, goes_out), GREY)
    box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 1.8}
    axes.text(
        place.x, place.y, place.text, ha="center", va="center", color=INK, fontsize=_FONT, bbox=box, zorder=3,
        gid=node.name,
    )  # fmt: skip


def _draw_edge(axes: "Axes", edge: Edge, ends: tuple[_Place, _Place], twin: int) -> None:
    """``twin`` counts the connections before it between the same populations."""
    from matplotlib.patches import FancyArrowPatch

    start, end = ends
    if edge.src == edge.dst:
        top = start.y + 0.3
        a, b, bend, clear = (start.x - 0.2, top), (start.x + 0.2, top), -2.0 - 0.6 * twin, (0.0, 0.0)
    else:
        a, b = (start.x, start.y), (end.x, end.y)
        near = 0 < b[0] - a[0] <= _STEP
        bend = -_BEND * (twin + (not near))
        control = np.array([(a[0] + b[0]) / 2 + bend * (b[1] - a[1]), (a[1] + b[1]) / 2 - bend * (b[0] - a[0])])
        clear = start.clearance(control - a), end.clearance(control - b)
    look = {"color": GREY, "linewidth": 1.3, "linestyle": "--" if edge.delay else "-", "mutation_scale": 12}
    arrow = FancyArrowPatch(
        a, b, arrowstyle="-|>", connectionstyle=f"arc3,rad={bend}", shrinkA=clear[0], shrinkB=clear[1], zorder=2,
        gid=edge.name, **look,
    )  # fmt: skip
    axes.add_patch(arrow)
    if edge.delay:
        middle = ((a[0] + b[0]) / 2 + bend / 2 * (b[1] - a[1]), (a[1] + b[1]) / 2 - bend / 2 * (b[0] - a[0]))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        text = f"{edge.delay} step{'s' if edge.delay > 1 else ''}"
        axes.text(
            *middle, text, ha="center", va="center", color=GREY, fontsize=8, bbox=box, zorder=2.5,
            gid=f"delay of {edge.name}",
        )  # fmt: skip
