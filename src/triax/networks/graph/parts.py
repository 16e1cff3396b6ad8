"""Nodes and edges of a graph, and the order in which they can be computed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Population:
    """A node: adds up what comes in, ``[batch, size]``, and applies ``activation`` once."""

    name: str
    size: int
    activation: Callable[..., Any] | None = None
    input_from: str | tuple | None = None
    output_to: str | None = None
    max_outgoing_delay: int = 0


@dataclass(frozen=True)
class Edge:
    """A connection without its transform."""

    name: str
    src: str
    dst: str
    delay: int


class Connection(NamedTuple):
    """A connection with its transform."""

    src: str
    dst: str
    transform: Any
    delay: int


def shortest_path(edges: Iterable[Edge], start: str, goal: str) -> list[str] | None:
    """Node names from ``start`` to ``goal`` along the edges, or ``None``."""
    edges, paths, seen = list(edges), [[start]], {start}
    for path in paths:
        if path[-1] == goal:
            return path
        for edge in edges:
            if edge.src == path[-1] and edge.dst not in seen:
                seen.add(edge.dst)
                paths.append([*path, edge.dst])
    return None


def topological_order(names: Iterable[str], edges: Iterable[Edge]) -> tuple[str, ...]:
    """Names so that each edge points forwards, ties in the given order; the edges must not form a cycle.

    Source: Kahn 1962.
    """
    names, edges, order = list(names), list(edges), []
    while names:
        ready = next(n for n in names if not any(e.dst == n and e.src in names for e in edges))
        names.remove(ready)
        order.append(ready)
    return tuple(order)


def components(names: Iterable[str], edges: Iterable[Edge]) -> tuple[tuple[str, ...], ...]:
    """Groups of nodes that reach each other, in an order in which all other edges point forwards."""
    names, edges = list(names), list(edges)
    reach = {n: {m for m in names if shortest_path(edges, n, m)} for n in names}
    groups: list[tuple[str, ...]] = []
    for n in names:
        if not any(n in group for group in groups):
            groups.append(tuple(m for m in names if m in reach[n] and n in reach[m]))
    between = [Edge("", a[0], b[0], 0) for a in groups for b in groups if a is not b and b[0] in reach[a[0]]]
    order = topological_order([group[0] for group in groups], between)
    return tuple(next(group for group in groups if group[0] == first) for first in order)
