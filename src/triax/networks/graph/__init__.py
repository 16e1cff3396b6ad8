"""Graphs of populations with delayed connections."""

from triax.networks.graph.graph import PopulationGraph
from triax.networks.graph.parts import Connection, Population

__all__ = ["Connection", "Population", "PopulationGraph"]
