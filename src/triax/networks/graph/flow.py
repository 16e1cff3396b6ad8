"""How signals run through a finished graph: step by step, or a whole sequence where nothing loops."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool

from triax.networks.graph.parts import Edge, Population
from triax.networks.history import Past, push
from triax.networks.inputs import as_float
from triax.networks.module import StatefulModule
from triax.networks.plain import name_of
from triax.networks.reshaping import select_part
from triax.networks.types import ACTIVATION_KEY, ModuleState, SizeError, StatefulModuleOutput
from triax.networks.unrolling import fold, scan_steps, unfold


class Group(StatefulModule):
    """Some nodes and the connections among them; the input is what comes from elsewhere, by node.

    The carry is ``{"buffers": {node: [batch, delay, size]}, "transforms": {connection: carry}}``; metrics and
    extras are by connection, the output is the activations by node.
    """

    def __init__(self, nodes: tuple[Population, ...], edges: tuple[Edge, ...], transforms: dict[str, Any]):
        self.nodes, self.edges = nodes, edges
        self.transforms = nnx.Dict({edge.name: transforms[edge.name] for edge in edges})

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step, node by node in the order in which they are given."""
        activations: dict[str, Array] = {}
        outs: dict[str, StatefulModuleOutput] = {}
        extras = rollout_extras or {}
        for node in self.nodes:
            total = x[node.name]
            for edge in self.edges:
                if edge.dst == node.name:
                    buffer = state["buffers"].get(edge.src)
                    signal = buffer[:, -edge.delay] if edge.delay else activations[edge.src]
                    args = state["transforms"][edge.name], signal, extras.get(edge.name)
                    outs[edge.name] = out = transformed(self.transforms[edge.name], edge, node.size, args)
                    total = total + out.output
            activations[node.name] = total if node.activation is None else node.activation(total)
        return StatefulModuleOutput(
            next_state={
                "buffers": {name: push(b, activations[name]) for name, b in state["buffers"].items()},
                "transforms": {name: out.next_state for name, out in outs.items()},
            },
            output=activations,
            regularization_loss=sum((out.regularization_loss for out in outs.values()), jnp.zeros(())),
            metrics={name: out.metrics for name, out in outs.items()},
            rollout_extras={name: out.rollout_extras for name, out in outs.items()},
        )

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """Buffers of zeros, and the transforms' carries reset."""
        return {
            "buffers": jax.tree.map(jnp.zeros_like, prev_state["buffers"]),
            "transforms": {n: self.transforms[n].reset_state(s) for n, s in prev_state["transforms"].items()},
        }


def transformed(transform: Any, edge: Edge, size: int, args: tuple, *, resets: Any = None) -> StatefulModuleOutput:
    """A transform's step, or its sequence with ``resets``; refused where its output does not fit the node."""
    state, signal, extras = args
    try:
        step = transform if resets is None else partial(_unroll, transform, resets)
        out = step(state, signal, extras)
    except SizeError as error:
        raise error.located(edge.name, edge.src) from None
    except Exception as error:
        error.add_note(f"In {edge.name!r} of PopulationGraph.")
        raise
    want = (*signal.shape[:-1], size)
    got = jnp.shape(out.output)
    if got[:-1] == want[:-1] and got != want:
        giver = f"the transform {name_of(transform)} of {edge.name}"
        raise SizeError(f"PopulationGraph: the node {edge.dst!r}", size, got[-1], giver)
    if got != want:
        raise ValueError(
            f"PopulationGraph: the transform of {edge.name} must give {list(want)} for the node "
            f"{edge.dst!r}; "
            f"got {list(got)}."
        )
    return out


def _unroll(transform: Any, resets: Array, state: ModuleState, xs: Any, extras: Any) -> StatefulModuleOutput:
    return transform.unroll(state, xs, resets, extras)


@dataclass(frozen=True)
class Flow:
    """The parts of a graph, and its nodes in groups that reach each other, in the order of computation."""

    nodes: dict[str, Population]
    edges: tuple[Edge, ...]
    transforms: dict[str, StatefulModule]
    groups: tuple[tuple[str, ...], ...]
    record: bool

    def step(self, state: ModuleState, obs: Any, extras: Any, batch: int) -> StatefulModuleOutput:
        """One step of the whole graph."""
        sums = {name: self._external(name, obs, (batch,)) for name in self.nodes}
        buffers, states, given = self._unpack(state, extras)
        nodes = tuple(self.nodes[name] for group in self.groups for name in group)
        group = Group(nodes, self.edges, self.transforms)
        out = group({"buffers": buffers, "transforms": states}, sums, given)
        return self._pack(out.replace(regularization_loss=out.regularization_loss + jnp.zeros(batch)))

    def sequence(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], extras: Any
    ) -> StatefulModuleOutput:
        """A sequence, group by group: a node that is in no loop runs over all steps at once."""
        sums = {name: self._external(name, xs, resets.shape) for name in self.nodes}
        buffers, states, given = self._unpack(state, extras)
        pasts: dict[str, Past] = {}
        done = StatefulModuleOutput({"buffers": {}, "transforms": {}}, {}, jnp.zeros(resets.shape), {}, {})
        for group in self.groups:
            for edge in self._edges_into(group):
                past = pasts.get(edge.src)
                signal = past.lagged(edge.delay) if edge.delay and past else done.output[edge.src]
                args = states[edge.name], signal, given.get(edge.name)
                node = self.nodes[edge.dst]
                out = transformed(self.transforms[edge.name], edge, node.size, args, resets=resets)
                sums[edge.dst] = sums[edge.dst] + out.output
                done = _with_edge(done, edge.name, out)
            done = _joined(done, self._run_group(group, sums, buffers, states, given, resets))
            for name in group:
                if name in buffers:
                    activation = done.output[name]
                    pasts[name] = Past(buffers[name], activation, resets, jnp.zeros_like(activation))
        done.next_state["buffers"].update({name: past.buffer() for name, past in pasts.items()})
        return self._pack(done)

    def _run_group(
        self, group: tuple[str, ...], sums: dict, buffers: dict, states: dict, given: dict, resets: Array
    ) -> StatefulModuleOutput:
        nodes = tuple(self.nodes[name] for name in group)
        inner = tuple(edge for edge in self.edges if edge.src in group and edge.dst in group)
        module = Group(nodes, inner, self.transforms)
        own = {name: sums[name] for name in group}
        if not inner:
            nothing = {"buffers": {}, "transforms": {}}
            out = module(nothing, fold(own))
            return out.replace(output=unfold(out.output, resets))
        carry = {
            "buffers": {name: buffers[name] for name in group if name in buffers},
            "transforms": {edge.name: states[edge.name] for edge in inner},
        }
        extras = {edge.name: given.get(edge.name) for edge in inner}
        return scan_steps(module, carry, own, resets, extras)

    def _edges_into(self, group: tuple[str, ...]) -> list[Edge]:
        return [edge for edge in self.edges if edge.dst in group and edge.src not in group]

    def _external(self, name: str, obs: Any, lead: tuple[int, ...]) -> Array:
        """What a node gets from the observation."""
        node = self.nodes[name]
        want = (*lead, node.size)
        if node.input_from is None:
            return jnp.zeros(want)
        part = select_part("PopulationGraph", f"the node {name!r}", node.input_from, obs)
        is_array = jax.tree_util.all_leaves([part])
        if not is_array or jnp.shape(part) != want:
            source = repr(node.input_from) if node.input_from else "the whole observation (no input_from was given)"
            got = list(jnp.shape(part)) if is_array else f"a tree, {jax.tree.structure(part)}"
            raise ValueError(f"PopulationGraph: the node {name!r} takes {list(want)} from {source}; got {got}.")
        return as_float(part)

    def _unpack(self, state: ModuleState, extras: Any) -> tuple[dict, dict, dict]:
        """Buffers by node, carries and extras by connection."""
        buffers = {n: value["buffer"] for n, value in state["populations"].items() if value}
        names = [edge.name for edge in self.edges]
        states = dict(zip(names, state["connections"], strict=True))
        given = {} if extras is None else dict(zip(names, extras["connections"], strict=True))
        return buffers, states, given

    def _pack(self, out: StatefulModuleOutput) -> StatefulModuleOutput:
        buffers, states = out.next_state["buffers"], out.next_state["transforms"]
        names = [edge.name for edge in self.edges]
        metrics = {name: out.metrics[name] for name in names}
        return out.replace(
            next_state={
                "populations": {n: {"buffer": buffers[n]} if n in buffers else {} for n in self.nodes},
                "connections": [states[name] for name in names],
            },
            output={
                node.output_to: out.output[name] for name, node in self.nodes.items() if node.output_to is not None
            },
            metrics={**metrics, ACTIVATION_KEY: {n: out.output[n] for n in self.nodes}} if self.record else metrics,
            rollout_extras={"connections": [out.rollout_extras[name] for name in names]},
        )


def _with_edge(done: StatefulModuleOutput, name: str, out: StatefulModuleOutput) -> StatefulModuleOutput:
    """``done`` with what one connection gave."""
    one = out.replace(
        next_state={"buffers": {}, "transforms": {name: out.next_state}},
        output={},
        metrics={name: out.metrics},
        rollout_extras={name: out.rollout_extras},
    )
    return _joined(done, one)


def _joined(a: StatefulModuleOutput, b: StatefulModuleOutput) -> StatefulModuleOutput:
    return StatefulModuleOutput(
        next_state={
            "buffers": {**a.next_state["buffers"], **b.next_state["buffers"]},
            "transforms": {**a.next_state["transforms"], **b.next_state["transforms"]},
        },
        output={**a.output, **b.output},
        regularization_loss=a.regularization_loss + b.regularization_loss,
        metrics={**a.metrics, **b.metrics},
        rollout_extras={**a.rollout_extras, **b.rollout_extras},
    )
