"""Populations that excite each other, with loops and delays."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool

from triax.core.keys import fold_name
from triax.core.numbers import check_count
from triax.networks.arguments import Activation, as_activation, check_names, check_rngs
from triax.networks.feedforward import Dense
from triax.networks.graph.flow import Flow
from triax.networks.graph.parts import Connection, Edge, Population, components, shortest_path, topological_order
from triax.networks.inputs import check_carry, check_old_carry
from triax.networks.module import StatefulModule
from triax.networks.placement import check_places
from triax.networks.plain import as_module, declared_features, name_of
from triax.networks.types import ModuleState, SizeError, StatefulModuleOutput
from triax.networks.unrolling import check_sequence


class PopulationGraph(StatefulModule):
    """A graph of populations (nodes) and connections (edges), each with its own delay; loops are welcome.

    Build, ``finalize()``, then use as any module::

        graph = PopulationGraph(rngs)
        graph.add_input("eye", 3, input_from="image")
        graph.add_population("cortex", 8, activation=nnx.tanh)
        graph.add_output("hand", 2)
        graph.connect("eye", "cortex")
        graph.connect("cortex", "cortex", delay=1)
        graph.connect("cortex", "hand", delay=2)
        graph.finalize()

    In a step, a node's sum is ``observation[input_from]`` plus, for each connection, its transform of the
    source's activation ``delay`` steps ago (zero before the episode began); the activation function is
    applied to the sum, once. Nodes are computed along the connections without delay, which therefore must not
    form a cycle; the one that would close it is refused at once, with the cycle's name. The output is a dict
    over the nodes with an output.

    Default transforms are Dense layers without activation, with keys derived from the names of both ends. The
    carry is ``{"populations": {name: {} or {"buffer": [batch, longest outgoing delay, size]}}, "connections":
    [carries]}``, extras are ``{"connections": [extras]}``, metrics ``{connection: metrics}``, the loss is the
    sum of the transforms'. ``unroll`` scans only the loops. Errors while building: ``ValueError``, for sizes
    that do not match :class:`SizeError`; after ``finalize``, or before it: ``RuntimeError``. Default transforms can be
    pickled; of what else a graph is made, transforms and activations, see :class:`Dense`.
    """

    def __init__(self, rngs: nnx.Rngs):
        check_rngs("PopulationGraph", "rngs", rngs)
        self._root: tuple[int, ...] = tuple(np.asarray(jax.random.key_data(rngs.params())).tolist())
        self.populations: tuple[Population, ...] = ()
        self.edges: tuple[Edge, ...] = ()
        self.transforms = nnx.Dict({})
        self.is_final = False
        self.record_activations = False

    # ------------------------------------------------------------------ building

    def add_population(self, name: str, size: int, *, activation: Activation | None = None) -> None:
        """A hidden node."""
        self._add(Population(name, size, _function(name, activation)))

    def add_input(
        self,
        name: str,
        size: int,
        *,
        input_from: str | tuple = (),
        activation: Activation | None = None,
        output_to: str | None = None,
    ) -> None:
        """A node that adds ``observation[input_from]``, ``[batch, size]``; a tuple is a path of keys and
        indices, and the empty one, the default, the whole observation.

        With ``output_to`` it is an output, too.
        """
        self._add(Population(name, size, _function(name, activation), input_from, output_to))

    def add_output(
        self,
        name: str,
        size: int,
        *,
        output_to: str | None = None,
        activation: Activation | None = None,
        input_from: str | tuple | None = None,
    ) -> None:
        """A node shown in the output as ``output_to``, or else under its name; with ``input_from`` an input,
        too.
        """
        self._add(
            Population(name, size, _function(name, activation), input_from, name if output_to is None else output_to)
        )

    def connect(
        self,
        src: str,
        dst: str,
        *,
        transform: Any = None,
        delay: int = 0,
        reciprocal: bool = False,
        use_bias: bool = True,
    ) -> None:
        """A connection; ``transform`` is any layer, by default Dense, with a bias unless ``use_bias=False``.

        ``reciprocal`` adds ``dst -> src`` with the same delay and a Dense layer of its own.
        """
        self._check_open()
        if reciprocal and transform is not None:
            raise ValueError("PopulationGraph: a reciprocal connection cannot share a transform. Connect twice.")
        delay = check_count("PopulationGraph", f"the delay of {src} -> {dst}", delay, low=0)
        for name in (src, dst):
            if name not in self._nodes():
                raise ValueError(f"PopulationGraph: no node {name!r}; there are {list(self._nodes())}.")
        edges = self.edges
        for ends in ((src, dst), (dst, src))[: 1 + reciprocal]:
            edges = (*edges, self._edge(edges, *ends, delay))
        new = {
            edge.name: self._dense(edge, use_bias) if transform is None else self._layer(edge, transform)
            for edge in edges[len(self.edges) :]
        }
        check_places(self, {edge.name: self.transforms[edge.name] for edge in self.edges} | new)
        for name, layer in new.items():
            self.transforms[name] = layer
        self.edges = edges

    def finalize(self) -> None:
        """Order the nodes, size the buffers, freeze."""
        self._check_open()
        self.populations = tuple(
            replace(node, max_outgoing_delay=max((e.delay for e in self.edges if e.src == node.name), default=0))
            for node in self.populations
        )
        self.is_final = True

    def _nodes(self) -> dict[str, Population]:
        return {node.name: node for node in self.populations}

    def _add(self, node: Population) -> None:
        self._check_open()
        check_names("PopulationGraph", [node.name], "the name of a node")
        if node.name in self._nodes():
            raise ValueError(f"PopulationGraph: there is a node {node.name!r} already.")
        size = check_count("PopulationGraph", f"the size of {node.name!r}", node.size)
        if not isinstance(node.input_from, str | tuple | None):
            what = f"PopulationGraph: input_from of {node.name!r} must be a key or a tuple of keys and indices"
            raise TypeError(f"{what}; got {node.input_from!r}.")
        if not isinstance(node.output_to, str | None):
            check_names("PopulationGraph", [node.output_to], f"output_to of {node.name!r}")
        for other in self.populations:
            if node.output_to is not None and other.output_to == node.output_to:
                raise ValueError(
                    f"PopulationGraph: {other.name!r} and {node.name!r} both give the output {node.output_to!r}."
                )
        self.populations = (*self.populations, replace(node, size=size))

    def _edge(self, edges: tuple[Edge, ...], src: str, dst: str, delay: int) -> Edge:
        back = None if delay else shortest_path((e for e in edges if not e.delay), dst, src)
        if back:
            raise ValueError(
                "PopulationGraph: the connections without delay would form the cycle "
                f"{' -> '.join([src, *back])}. "
                "Give one of them a delay of at least 1."
            )
        name = f"{src}->{dst}" + (f"@{delay}" if delay else "")
        numbered = itertools.chain([name], (f"{name}#{i}" for i in itertools.count(2)))
        taken = {edge.name for edge in edges}  # also by other ends: names of nodes may have arrows in them
        return Edge(next(n for n in numbered if n not in taken), src, dst, delay)

    def _layer(self, edge: Edge, transform: Any) -> StatefulModule:
        """A given transform, refused where the sizes that it declares are not those of its nodes."""
        layer, nodes = as_module(transform), self._nodes()
        name = f"the transform {name_of(layer)} of {edge.name}"
        takes, gives = declared_features(layer, "in_features"), declared_features(layer, "out_features")
        if takes not in (None, nodes[edge.src].size):
            raise SizeError(f"PopulationGraph: {name}", takes, nodes[edge.src].size, f"the node {edge.src!r}")
        if gives not in (None, nodes[edge.dst].size):
            raise SizeError(f"PopulationGraph: the node {edge.dst!r}", nodes[edge.dst].size, gives, name)
        return layer

    def _dense(self, edge: Edge, use_bias: bool) -> Dense:
        root = jax.random.wrap_key_data(jnp.array(self._root, jnp.uint32))
        nodes, rngs = self._nodes(), nnx.Rngs(params=fold_name(root, edge.name))
        return Dense(nodes[edge.src].size, nodes[edge.dst].size, rngs, use_bias=use_bias)

    def _check_open(self) -> None:
        if self.is_final:
            raise RuntimeError("PopulationGraph: finalize() was called; the graph cannot change any more.")

    # ------------------------------------------------------------------ use

    @property
    def connections(self) -> tuple[Connection, ...]:
        """The connections in the order in which they were made."""
        return tuple(Connection(e.src, e.dst, self.transforms[e.name], e.delay) for e in self.edges)

    def __call__(self, state: ModuleState, obs: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        flow, batch = self._flow(), np.shape(jax.tree.leaves((obs, state, 0))[0])[:1]
        if not batch:
            raise ValueError(f"PopulationGraph: takes arrays [batch, ...]; got {obs!r}, without a batch axis.")
        self._check_carry(state, batch)
        if rollout_extras is not None:
            self._check_extras(rollout_extras)
        return flow.step(state, obs, rollout_extras, *batch)

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence; only groups of nodes that reach each other are scanned."""
        check_sequence(self, state, xs, resets)
        if not resets.shape[0]:
            return super().unroll(state, xs, resets, rollout_extras)
        self._check_carry(state, resets.shape[1:])
        if rollout_extras is not None:
            self._check_extras(rollout_extras)
        return self._flow().sequence(state, xs, resets, rollout_extras)

    def _check_entries(self, packed: Any, what: str, keys: set[str]) -> None:
        """Refuse a carry or extras that are no dict with these keys, or of another number of connections."""
        if not isinstance(packed, Mapping) or set(packed) != keys:
            got = sorted(packed) if isinstance(packed, Mapping) else type(packed).__name__
            raise ValueError(f"PopulationGraph: the {what}; got {got}.")
        if len(packed["connections"]) != len(self.edges):
            count = len(packed["connections"])
            raise ValueError(f"PopulationGraph: the {what}, with {len(self.edges)} connections; got {count}.")

    def _check_extras(self, extras: Any) -> None:
        self._check_entries(extras, "rollout_extras must be those of a rollout of this graph", {"connections"})

    def _check_carry(self, state: ModuleState, batch: tuple[int, ...] | None) -> None:
        self._check_entries(state, "carry must be like that of initialize_state(batch)", {"populations", "connections"})
        nodes = sorted(self.populations, key=lambda node: node.name)
        buffers = [(node.max_outgoing_delay, node.size) for node in nodes if node.max_outgoing_delay]
        if batch is not None:
            check_carry(self, state["populations"], buffers, batch)
        elif buffers:
            check_old_carry(self, state["populations"], buffers)

    def initialize_state(self, batch_size: int) -> ModuleState:
        """Buffers of zeros, and the transforms' carries."""
        flow = self._flow()
        return {
            "populations": {node.name: _buffer(node, (batch_size,)) for node in self.populations},
            "connections": [t.initialize_state(batch_size) for t in flow.transforms.values()],
        }

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """Buffers of zeros, and the transforms' carries reset."""
        self._check_carry(prev_state, None)
        transforms = self._flow().transforms.values()
        return {
            "populations": jax.tree.map(jnp.zeros_like, prev_state["populations"]),
            "connections": [t.reset_state(s) for t, s in zip(transforms, prev_state["connections"], strict=True)],
        }

    def update_statistics(self, rollout_extras: Any) -> None:
        """Each transform learns from its own extras."""
        transforms = self._flow().transforms.values()
        self._check_extras(rollout_extras)
        for transform, extras in zip(transforms, rollout_extras["connections"], strict=True):
            transform.update_statistics(extras)

    def _flow(self) -> Flow:
        if not self.is_final:
            raise RuntimeError("PopulationGraph: call finalize() before using the graph.")
        without_delay = [edge for edge in self.edges if not edge.delay]
        order = topological_order(self._nodes(), without_delay)
        return Flow(
            self._nodes(),
            self.edges,
            {edge.name: self.transforms[edge.name] for edge in self.edges},
            tuple(tuple(n for n in order if n in group) for group in components(self._nodes(), self.edges)),
            self.record_activations,
        )


def _buffer(node: Population, lead: tuple[int, ...]) -> dict[str, Array]:
    delay = node.max_outgoing_delay
    return {"buffer": jnp.zeros((*lead, delay, node.size))} if delay else {}


def _function(name: str, activation: Activation | None) -> Callable[..., Any] | None:
    return as_activation("PopulationGraph", f"the activation of {name!r}", activation)
