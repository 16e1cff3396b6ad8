"""A straightforward simulation of a graph, in NumPy."""

import numpy as np
from flax import nnx


def simulated(graph, obs, resets):
    """Every node and connection in turn, with the activations of all earlier steps of the episode in lists."""
    weights = {
        name: {k: np.asarray(v) for k, v in value["linear"].items()}
        for name, value in nnx.to_pure_dict(nnx.state(graph, nnx.Param)).get("transforms", {}).items()
    }
    nodes = {node.name: node for node in graph.populations}
    outputs = {n.output_to: np.zeros((*resets.shape, n.size)) for n in nodes.values() if n.output_to}
    for b in range(resets.shape[1]):
        history = []
        for t in range(resets.shape[0]):
            history = [] if resets[t, b] else history
            now = {}
            while len(now) < len(nodes):
                for name, node in nodes.items():
                    edges = [e for e in graph.edges if e.dst == name]
                    if name in now or any(not e.delay and e.src not in now for e in edges):
                        continue
                    total = np.zeros(node.size)
                    if node.input_from:
                        path = node.input_from if isinstance(node.input_from, tuple) else (node.input_from,)
                        part = obs
                        for key in path:
                            part = part[key]
                        total = total + part[t, b]
                    for e in edges:
                        w = weights[e.name]
                        if e.delay == 0:
                            signal = now[e.src]
                        elif len(history) >= e.delay:
                            signal = history[-e.delay][e.src]
                        else:
                            signal = np.zeros(nodes[e.src].size)
                        total = total + signal @ w["kernel"] + w.get("bias", 0)
                    now[name] = np.asarray(node.activation(total)) if node.activation else total
            history.append(now)
            for node in nodes.values():
                if node.output_to:
                    outputs[node.output_to][t, b] = now[node.name]
    return outputs
