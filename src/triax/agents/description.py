"""How an agent prints: its networks with their parameters, and what of its config is not the default."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
from jaxtyping import PyTree

from triax.functions.description import count_parameters, describe_function, describe_leaves


def describe_agent(agent: Any) -> str:
    """A few lines; nothing is computed, shapes come from one abstract ``init``."""
    key = jax.random.key(0)
    state = jax.eval_shape(agent.init, key)
    carry = jax.eval_shape(lambda state: agent.initial_carry(state, 1, key), state)
    networks: dict[str, str] = {}
    shapes: dict[str, Any] = {}
    for name, params in _networks(state, ""):
        shape = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), params)
        twin = next((other for other, known in shapes.items() if known == shape), None)
        leaves = f"like {twin}" if twin else describe_leaves(params)
        networks[name], shapes[name] = f"{count_parameters(params)}: {leaves}", shape
    facts = ["with memory" if jax.tree.leaves(carry) else "no memory"]
    return describe_function(type(agent).__name__, facts, {**networks, "config": describe_config(agent.config)})


def describe_config(config: Any) -> str:
    """The class with the fields that differ from their defaults."""
    fields = dataclasses.fields(config)
    told = [f"{f.name}={getattr(config, f.name)!r}" for f in fields if getattr(config, f.name) != _default(f)]
    return f"{type(config).__name__}({', '.join(told)})"


def _default(field: dataclasses.Field) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _networks(node: PyTree, name: str) -> Iterator[tuple[str, Any]]:
    """Parameters of the parts of a state that have some, by their dotted names."""
    if hasattr(node, "params"):
        yield name or "network", node.params
    elif hasattr(node, "_fields"):
        for field in node._fields:
            yield from _networks(getattr(node, field), f"{name}.{field}" if name else field)
